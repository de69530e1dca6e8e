#!/usr/bin/env python3
"""Record the results of the whole package on small fixed data, and compare two such records.

    python golden_record.py record OUT [--only PREFIX ...]
        Run everything on the fixed data, with seed 0 and one thread.
    python golden_record.py compare [OLD] NEW [--tolerance X]
        Print the differences; the exit code is 1 if there are any.  OLD defaults to record.json.gz beside this script.
    python golden_record.py check [--only PREFIX ...]
        Record and compare with record.json.gz; tests/golden/test_golden_record.py runs it, in parts.
    python golden_record.py data FOLDER
        Write the fixed data.  This is necessary only once: afterward the files are the data.

A record shows whether a change of files and names also changes results.  The script uses only the public API and the
command line.

A record names its machine: processor, vendor, model, kernels and version of torch.  `compare` and `check` compare
records of one machine bit for bit, and others as record_machine.py describes.

`compare` compares weights as a sorted list of SHA-256 hashes, so the name of a parameter does not matter.  It compares
JSON as a tree.  It ignores sentences (strings with a space), except the texts of the data.  It also ignores dates,
versions, commands, paths, and fingerprints that depend on a config.json.

The commits of record.json.gz say which entries changed, and why.

The script reads and writes a file with gzip if the name of the file ends in .gz.
"""

import argparse
import contextlib
import gzip
import hashlib
import io
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from record_machine import describe_machine, is_same_machine, portable_differences

if TYPE_CHECKING:
    import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
warnings.simplefilter("ignore")

HERE = Path(__file__).parent
DATA = HERE / "data"
"""The folder of train.jsonl, test.jsonl, synonyms.jsonl and images.npz."""
RECORD = HERE / "record.json.gz"
"""The record that `compare` uses if the user names only one record."""

SMALL_SETTINGS = {"hidden": 8, "dimension": 12, "min_df": 1}
JSON_ON_CPU = ("--json", "--device", "cpu")
EXPLAINER_VARIANTS: dict[str, list[dict[str, Any]]] = {
    "l2x": [
        {},
        {"conditioned": True},
        {"mitigation": "random-pretraining"},
        {"mitigation": "mask-neutral"},
        {"conditioned": True, "mitigation": "random-query"},
        {"conditioned": True, "mitigation": "none"},
    ],
    "vibi": [{}],
    "ail": [{}],
    "cxplain": [{}],
}
"""Name of an explainer that needs a fit -> the arguments of each fit."""

VOLATILE_KEYS = {
    "command",
    "date",
    "fingerprint",
    "generator",
    "manifest_sha256",
    "model",
    "numpy",
    "out",
    "path",
    "python",
    "seconds",
    "signature",
    "steadygaze",
    "time",
    "torch",
    "v",
    "version",
    "versions",
}
"""JSON keys that `compare` ignores."""
MOST_LINES = 200
"""`compare` prints at most this number of differences."""

Json = Any
"""A value that the module json reads or writes."""
Tensors = dict[str, dict[str, list[Json]]]
"""File -> name of a tensor -> dtype, shape and SHA-256 hash."""


# ------------------------------------------------------------------------------------------------------------- data
def write_data(folder: Path) -> None:
    """Write the fixed data: texts from the built-in corpus, synonyms of their words, and random images."""
    folder.mkdir(parents=True, exist_ok=True)
    write_texts(folder)
    write_synonyms(folder)
    write_images(folder)


def write_texts(folder: Path) -> None:
    """Write train.jsonl and test.jsonl."""
    import steadygaze as sg

    corpus = sg.load_corpus("planted-reviews")
    for split, count in (("train", 96), ("test", 32)):
        rows = []
        for example in corpus.splits[split][:count]:
            spans = [list(span) for span in example.rationales or ()]
            rows.append({"text": example.text, "label": example.label, "evidence": spans})
        write_rows(folder / f"{split}.jsonl", rows)


def write_synonyms(folder: Path) -> None:
    """Write synonyms.jsonl: the synonyms of a word are the next two words of the alphabetical list."""
    texts = [row["text"] for row in read_rows(folder / "train.jsonl")]
    words = sorted({word.strip(".,;:!?").lower() for text in texts for word in text.split()})
    words = [word for word in words if word.isalpha() and len(word) > 3]
    count = len(words)
    rows = [
        {"word": word, "synonyms": [words[(position + 1) % count], words[(position + 2) % count]]}
        for position, word in enumerate(words)
    ]
    write_rows(folder / "synonyms.jsonl", rows, ensure_ascii=True)


def write_images(folder: Path) -> None:
    """Write images.npz: dark noise, with a bright square whose place depends on the label."""
    import numpy as np

    generator = np.random.default_rng(0)
    labels = np.arange(60) % 2
    pixels = generator.integers(0, 60, (60, 12, 12)).astype("uint8")
    pixels[labels == 1, 2:6, 2:6] = 220
    pixels[labels == 0, 6:10, 6:10] = 220
    np.savez_compressed(folder / "images.npz", images=pixels, labels=labels)


def write_rows(path: Path, rows: Sequence[Json], ensure_ascii: bool = False) -> None:
    """Write one JSON value per line."""
    lines = [json.dumps(row, ensure_ascii=ensure_ascii) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8")


def read_rows(path: Path) -> list[Json]:
    """Read one JSON value per line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@dataclass(frozen=True)
class Split:
    """The texts and labels of one file of the fixed data."""

    texts: list[str]
    labels: list[Json]


def read_split(name: str) -> Split:
    """Read the split `train` or `test`."""
    rows = read_rows(DATA / f"{name}.jsonl")
    return Split([row["text"] for row in rows], [row["label"] for row in rows])


# ---------------------------------------------------------------------------------------------------------- records
def read_record(path: Path) -> dict[str, Json]:
    """Read a record from a JSON file."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    record: dict[str, Json] = json.loads(content.decode("utf-8"))
    return record


def write_record(path: Path, record: dict[str, Json]) -> None:
    """Write a record to a JSON file; equal records give equal files."""
    text = json.dumps(record, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    content = text.encode("utf-8")
    if path.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    path.write_bytes(content)


def hash_tensors(folder: Path) -> Tensors:
    """Hash each tensor of each .safetensors file below a folder, except the hashes of the training texts."""
    from safetensors import safe_open

    hashes: Tensors = {}
    for path in sorted(set(folder.rglob("*.safetensors")) - set(folder.rglob("training_texts.safetensors"))):
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            hashes[str(path.relative_to(folder))] = {name: describe_tensor(file.get_tensor(name)) for name in names}
    return hashes


def describe_tensor(tensor: "np.ndarray") -> list[Json]:
    """Return the dtype, the shape and the SHA-256 hash of a tensor."""
    return [str(tensor.dtype), list(tensor.shape), hashlib.sha256(tensor.tobytes()).hexdigest()]


# ----------------------------------------------------------------------------------------------------- command line
def capture_main(arguments: Sequence[object], errors: TextIO) -> tuple[Json, str]:
    """Run the command line in this process; return its exit code and its standard output."""
    from steadygaze.cli import main as steadygaze_main

    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    code: Json = 0
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            steadygaze_main([str(argument) for argument in arguments])
        except SystemExit as system_exit:
            code = system_exit.code or 0
    output.flush()
    return code, output.buffer.getvalue().decode()


def run_command(*arguments: object) -> dict[str, Json]:
    """Run a command; return its exit code and its output as JSON, or the end of its standard error."""
    errors = io.StringIO()
    code, text = capture_main(arguments, errors)
    if code in (0, 1):
        return {"code": code, "json": parse_output(text)}
    return {"code": code, "json": {"stderr": errors.getvalue()[-600:]}}


def parse_output(text: str) -> Json:
    """Parse one JSON value, or one value per line; return the start of any other text."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError:
        return text[:2000]


def list_names(kind: str) -> list[str]:
    """Return the names that the command `list` shows, without names that contain a space."""
    rows = run_command("list", kind, "--json")["json"]
    return [row["name"] for row in rows if " " not in row["name"]]


# --------------------------------------------------------------------------------------------------------- recording
@dataclass
class Recorder:
    """Runs functions and stores the results and the durations by name."""

    prefixes: Sequence[str]
    results: dict[str, Json] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def note(self, name: str, function: Callable[..., Json], *arguments: Any, **options: Any) -> None:
        """Run a function and store its result, if the name starts with a prefix or there are no prefixes."""
        if not self.prefixes or name.startswith(tuple(self.prefixes)):
            self.note_always(name, function, *arguments, **options)

    def note_always(self, name: str, function: Callable[..., Json], *arguments: Any, **options: Any) -> None:
        """Run a function and store its result, or the error that it raises."""
        start = time.time()
        try:
            self.results[name] = function(*arguments, **options)
        except Exception as error:
            self.results[name] = {"error": f"{type(error).__name__}: {error}"[:300]}
        self.seconds[name] = round(time.time() - start, 1)
        print(f"{self.seconds[name]:6.1f} s  {name}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Workspace:
    """The fixed texts, and a temporary folder for everything that the package writes."""

    train: Split
    test: Split
    folder: Path

    @property
    def model(self) -> Path:
        """The folder of the classifier that most commands read."""
        return self.folder / "model"

    @property
    def other_model(self) -> Path:
        """The folder of the same classifier with another seed."""
        return self.folder / "other"

    @property
    def rationalizer(self) -> Path:
        """The folder of a classifier that selects words."""
        return self.folder / "selects"

    @property
    def image_model(self) -> Path:
        """The folder of the image classifier."""
        return self.folder / "images"


def record_everything(prefixes: Sequence[str]) -> dict[str, Json]:
    """Run everything on the fixed data and return the record."""
    import torch

    torch.set_num_threads(1)
    recorder = Recorder(prefixes)
    workspace = Workspace(read_split("train"), read_split("test"), Path(tempfile.mkdtemp(prefix="golden-")))
    techniques = list_names("techniques")
    explainers = [name for name in list_names("explainers") if name not in EXPLAINER_VARIANTS]

    record_classifiers(recorder, workspace, techniques)
    recorder.note_always("weights/models", train_models, workspace)  # everything below needs these models
    record_text_explainers(recorder, workspace)
    record_images(recorder, workspace)
    copy_data(workspace)
    record_explanations(recorder, workspace, explainers)
    record_audit_commands(recorder, workspace)
    record_audit_calls(recorder, workspace)
    record_certificates(recorder, workspace)
    record_other_commands(recorder, workspace)

    results = hide_folders(recorder.results, [str(workspace.folder), str(HERE)])
    return {"machine": describe_machine(), "found": results, "seconds": recorder.seconds}


def hide_folders(value: Json, folders: Sequence[str]) -> Json:
    """Replace the folders of this machine in each string."""
    if isinstance(value, dict):
        return {str(key): hide_folders(entry, folders) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [hide_folders(entry, folders) for entry in value]
    if isinstance(value, str):
        for folder in folders:
            value = value.replace(folder, "<folder>")
    return value


# ---------------------------------------------------------------------------------------------------------- weights
def record_classifiers(recorder: Recorder, workspace: Workspace, techniques: Sequence[str]) -> None:
    """Record the weights of each technique, of each encoder, and of each technique with a variant `released`."""
    for technique in techniques:
        recorder.note(f"weights/technique/{technique}", train_classifier, workspace, technique)
    for encoder in ("average", "cnn", "gru", "lstm", "bigru", "rnn"):
        recorder.note(f"weights/encoder/{encoder}", train_classifier, workspace, "vanilla", encoder=encoder)
    for technique in ("seat", "attention-iat", "a2r"):
        recorder.note(f"weights/released/{technique}", train_classifier, workspace, technique, variant="released")


def train_classifier(workspace: Workspace, technique: str, encoder: str = "bilstm", variant: str = "") -> Json:
    """Train a text classifier for two epochs; return its weights and its probabilities."""
    import steadygaze as sg

    folder = workspace.folder / f"{technique}-{encoder}-{variant}"
    settings = {**SMALL_SETTINGS, "synonyms": str(DATA / "synonyms.jsonl")}
    if variant:
        settings["variant"] = variant
    classifier = sg.TextClassifier(
        technique=technique, seed=0, device="cpu", batch_size=16, epochs=2, encoder=encoder, settings=settings
    )
    classifier.fit(workspace.train.texts, workspace.train.labels)
    classifier.save(folder)
    probabilities = classifier.predict_proba(workspace.test.texts[:8]).tolist()
    return {"tensors": hash_tensors(folder), "probabilities": probabilities}


def train_models(workspace: Workspace) -> Json:
    """Train the models of all later records, for enough epochs that they are better than random predictions."""
    import steadygaze as sg

    models = (
        (workspace.model, "vanilla", 0),
        (workspace.other_model, "vanilla", 1),
        (workspace.rationalizer, "rnp", 0),
    )
    for folder, technique, seed in models:
        settings = {**SMALL_SETTINGS, "learning_rate": 0.01}
        classifier = sg.TextClassifier(
            technique=technique, seed=seed, device="cpu", batch_size=8, epochs=6, settings=settings
        )
        classifier.fit(workspace.train.texts, workspace.train.labels)
        classifier.save(folder)
    return {folder.name: hash_tensors(folder) for folder, _, _ in models}


def record_text_explainers(recorder: Recorder, workspace: Workspace) -> None:
    """Record the weights of each explainer of texts that needs a fit, in each of its variants."""
    import steadygaze as sg

    classifier = sg.load(workspace.model)
    for name, variants in EXPLAINER_VARIANTS.items():
        for position, variant in enumerate(variants):
            label = "+".join(f"{key}={value}" for key, value in variant.items()) or "default"
            recorder.note(
                f"weights/learned/{name}/{label}",
                fit_explainer,
                workspace.folder / f"{name}{position}",
                classifier,
                workspace.train.texts,
                name,
                k=3,
                settings={"epochs": 2},
                **variant,
            )


def fit_explainer(folder: Path, black_box: Any, inputs: Any, name: str, **options: Any) -> Json:
    """Fit an explainer; return its weights, its rows, and its explanations of three texts."""
    import steadygaze as sg

    explainer = sg.fit_explainer(black_box, inputs, name, seed=0, device="cpu", **options)
    explainer.save(folder)
    tensors = hash_tensors(folder)
    rows = [row.to_dict() for row in explainer.rows]
    explanations = None
    if isinstance(inputs, list):
        explanations = [explanation.to_dict() for explanation in explainer.explain(inputs[:3])]
    return {"tensors": tensors, "rows": rows, "explained": explanations}


def record_images(recorder: Recorder, workspace: Workspace) -> None:
    """Record the weights of the image classifier and of each explainer of images."""
    import numpy as np

    archive = np.load(DATA / "images.npz")
    recorder.note("weights/images/classifier", train_image_model, workspace, archive["images"], archive["labels"])
    for name in EXPLAINER_VARIANTS:
        recorder.note(f"weights/images/{name}", fit_image_explainer, workspace, archive["images"], name)


def train_image_model(workspace: Workspace, images: "np.ndarray", labels: "np.ndarray") -> Json:
    """Train the image classifier; return its weights and its probabilities."""
    import steadygaze as sg

    classifier = sg.ImageClassifier(seed=0, epochs=2, device="cpu").fit(images, labels)
    classifier.save(workspace.image_model)
    probabilities = classifier.predict_proba(images[:6]).tolist()
    return {"tensors": hash_tensors(workspace.image_model), "probabilities": probabilities}


def fit_image_explainer(workspace: Workspace, images: "np.ndarray", name: str) -> Json:
    """Fit an explainer to the image classifier."""
    import steadygaze as sg

    folder = workspace.folder / f"images-{name}"
    classifier = sg.load(workspace.image_model)
    return fit_explainer(folder, classifier, images, name, k=4, settings={"epochs": 2, "patch": 3})


# --------------------------------------------------------------------------------------------------------- commands
def copy_data(workspace: Workspace) -> None:
    """Copy the fixed data to the temporary folder, because a bundle stores paths relative to its own folder."""
    for file in DATA.iterdir():
        (workspace.folder / file.name).write_bytes(file.read_bytes())


def data_arguments(workspace: Workspace) -> tuple[object, ...]:
    """Return the option that names the test texts in the temporary folder."""
    return ("--data", workspace.folder / "test.jsonl")


def audit_arguments(workspace: Workspace) -> tuple[object, ...]:
    """Return the arguments that all audits have after the model."""
    return (
        *data_arguments(workspace),
        *("--rationales", "evidence", "--synonyms", workspace.folder / "synonyms.jsonl", "--sample", 8),
        *("--device", "cpu", "--json"),
    )


def record_explanations(recorder: Recorder, workspace: Workspace, explainers: Sequence[str]) -> None:
    """Record the commands `predict` and `explain`."""
    test = workspace.test
    recorder.note("predict", run_command, "predict", workspace.model, "--file", DATA / "test.jsonl", *JSON_ON_CPU)
    for name in explainers:
        model = workspace.rationalizer if name == "rationale" else workspace.model
        arguments = ("explain", model, *test.texts[:3], "--explainer", name, *JSON_ON_CPU)
        recorder.note(f"explain/{name}", run_command, *arguments)
    target = ("--explainer", "integrated-gradients", "--target", test.labels[0])
    recorder.note("explain/target", run_command, "explain", workspace.model, test.texts[0], *target, *JSON_ON_CPU)


def record_audit_commands(recorder: Recorder, workspace: Workspace) -> None:
    """Record the command `audit`."""
    arguments = audit_arguments(workspace)
    audit = ("audit", workspace.model, *arguments)
    thorough = ("--thorough", "--limit", 8, "--explainer", "attention", "--explainer", "leave-one-out")
    recorder.note("audit/attention", run_command, *audit)
    recorder.note("audit/thorough", run_command, *audit, *thorough)
    recorder.note("audit/seeds", run_command, *audit, "--other-seed", workspace.other_model)
    recorder.note("audit/rationalizer", run_command, "audit", workspace.rationalizer, *arguments)
    recorder.note("audit/gate", run_command, *audit, "--require", "accuracy>=0.99")
    recorder.note("audit/bundle", audit_bundle, (*audit, "--bundle"), workspace.folder / "bundle")


def audit_bundle(arguments: Sequence[object], bundle: Path) -> Json:
    """Write a bundle, read its rows, and verify it; the last of the arguments is the option that names the bundle."""
    report = run_command(*arguments, bundle)
    rows = read_rows(bundle / "rows.jsonl")
    verification = run_command("audit", "--verify", bundle, *JSON_ON_CPU)
    return [report, rows, verification]


def record_audit_calls(recorder: Recorder, workspace: Workspace) -> None:
    """Record the function `audit` of the public API."""
    recorder.note("audit/black-box", audit_black_box, workspace)
    recorder.note("audit/train", audit_with_training_texts, workspace)


def audit_black_box(workspace: Workspace) -> Json:
    """Audit a lambda, because a report contains the name of a function that has one."""
    import steadygaze as sg

    report = sg.audit(
        lambda texts: [[0.1, 0.9] if "good" in text else [0.7, 0.3] for text in texts],
        workspace.test.texts[:8],
        workspace.test.labels[:8],
        classes=sorted(set(workspace.train.labels)),
    )
    return report.to_dict()


def audit_with_training_texts(workspace: Workspace) -> Json:
    """Audit a model together with the texts of its training."""
    import steadygaze as sg

    train = (workspace.train.texts, workspace.train.labels)
    return sg.audit(sg.load(workspace.model), workspace.test.texts, workspace.test.labels, train=train).to_dict()


def record_certificates(recorder: Recorder, workspace: Workspace) -> None:
    """Record the command `certify`."""
    certify = ("certify", workspace.model, *data_arguments(workspace))
    for norm in ("linf", "l2"):
        recorder.note(f"certify/{norm}", run_command, *certify, "--radius", 0.01, "--norm", norm, *JSON_ON_CPU)
    simplex = ("--radius", 0.05, "--simplex", "--reference", workspace.other_model)
    recorder.note("certify/simplex", run_command, *certify, *simplex, *JSON_ON_CPU)


def record_other_commands(recorder: Recorder, workspace: Workspace) -> None:
    """Record the commands `compare` and `fit-explainer`."""
    train = DATA / "train.jsonl"
    settings = [argument for key, value in SMALL_SETTINGS.items() for argument in ("--set", f"{key}={value}")]
    study = ("--techniques", "vanilla,word-at", "--seeds", 2, "--epochs", 1, "--workers", 1)
    study = (*study, "--out", workspace.folder / "compare")
    recorder.note("compare", run_command, "compare", train, *study, *JSON_ON_CPU, *settings)

    fit = ("--explainer", "l2x", "--k", 3, "--set", "epochs=2", "--out", workspace.folder / "command")
    recorder.note("fit-explainer", run_command, "fit-explainer", workspace.model, "--data", train, *fit, *JSON_ON_CPU)


# ------------------------------------------------------------------------------------------------------- comparison
def compare_records(old_path: Path, new_path: Path, tolerance: float) -> bool:
    """Print the differences between two records; return whether there are any."""
    return print_differences(read_record(old_path), read_record(new_path), tolerance)


def check_entries(prefixes: Sequence[str]) -> bool:
    """Record the entries with these prefixes, or all; return whether any differs from record.json.gz."""
    old, new = read_record(RECORD), json.loads(json.dumps(record_everything(prefixes)))
    chosen = {name: entry for name, entry in old["found"].items() if name in new["found"] or not prefixes}
    return print_differences({**old, "found": chosen}, new, 0.0)


def print_differences(old: dict[str, Json], new: dict[str, Json], tolerance: float) -> bool:
    """Print the differences between two records; return whether there are any."""
    texts = {text for name in ("train", "test") for text in read_split(name).texts}
    old_results, new_results = simplify(old["found"], texts), simplify(new["found"], texts)
    if is_same_machine(old["machine"], new["machine"]):
        lines = list(differences(old_results, new_results, tolerance))
    else:
        print(f"another machine than {old['machine']}: compared within a tolerance")
        lines = list(portable_differences(old_results, new_results, differences))
    print(*lines[:MOST_LINES], f"{len(lines)} differences in {len(old_results)} records", sep="\n")
    return bool(lines)


def simplify(value: Json, texts: set[str]) -> Json:
    """Remove the volatile keys of a JSON tree, and replace sentences that are not in the data."""
    if isinstance(value, dict):
        return {
            key: entry if key == "tokens" else simplify(entry, texts)
            for key, entry in value.items()
            if key not in VOLATILE_KEYS
        }
    if isinstance(value, list):
        return [simplify(entry, texts) for entry in value]
    return "<sentence>" if isinstance(value, str) and " " in value and value not in texts else value


def remove_tensor_names(tensors: Tensors) -> dict[str, list[str]]:
    """Return file -> sorted descriptions of its tensors."""
    return {file: sorted(map(json.dumps, descriptions.values())) for file, descriptions in tensors.items()}


def differences(old: Json, new: Json, tolerance: float, place: str = "") -> Iterator[str]:
    """Compare two JSON trees; yield one line per difference."""
    if isinstance(old, dict) and isinstance(new, dict):
        yield from dictionary_differences(old, new, tolerance, place)
    elif isinstance(old, list) and isinstance(new, list):
        yield from list_differences(old, new, tolerance, place)
    elif values_differ(old, new, tolerance):
        yield f"{place}: {old!r:.80} is now {new!r:.80}"


def dictionary_differences(old: dict[str, Json], new: dict[str, Json], tolerance: float, place: str) -> Iterator[str]:
    """Compare two dictionaries key by key; compare tensors without their names and without tolerance."""
    for key in sorted({*old, *new}):
        key_place = f"{place}.{key}"
        if key not in new:
            yield f"{key_place}: gone"
        elif key not in old:
            yield f"{key_place}: new"
        elif key == "tensors":
            yield from differences(remove_tensor_names(old[key]), remove_tensor_names(new[key]), 0, key_place)
        else:
            yield from differences(old[key], new[key], tolerance, key_place)


def list_differences(old: list[Json], new: list[Json], tolerance: float, place: str) -> Iterator[str]:
    """Compare two lists entry by entry, if they have the same length."""
    if len(old) != len(new):
        yield f"{place}: {len(old)} entries, now {len(new)}"
        return
    for position, (old_entry, new_entry) in enumerate(zip(old, new, strict=True)):
        yield from differences(old_entry, new_entry, tolerance, f"{place}[{position}]")


def values_differ(old: Json, new: Json, tolerance: float) -> bool:
    """Return whether two values differ by more than the tolerance; NaN is equal to NaN."""
    if old != old and new != new:
        return False
    if tolerance and isinstance(old, float) and isinstance(new, float | int):
        return abs(old - new) > tolerance * max(1.0, abs(old))
    return bool(old != new)


# ------------------------------------------------------------------------------------------------------------- main
def parse_arguments() -> argparse.Namespace:
    """Parse the command line of this script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record", help="run everything and write a record")
    record.add_argument("out", type=Path)
    record.add_argument("--only", nargs="*", default=[], metavar="PREFIX")
    compare = commands.add_parser("compare", help="print the differences between two records")
    compare.add_argument("old", type=Path, nargs="?", default=RECORD)
    compare.add_argument("new", type=Path)
    compare.add_argument("--tolerance", type=float, default=0.0, metavar="X")
    check = commands.add_parser("check", help="record and compare with record.json.gz")
    check.add_argument("--only", nargs="*", default=[], metavar="PREFIX")
    data = commands.add_parser("data", help="write the fixed data")
    data.add_argument("folder", type=Path)
    return parser.parse_args()


def main() -> None:
    """Run one command of this script."""
    arguments = parse_arguments()
    if arguments.command == "data":
        write_data(arguments.folder)
    elif arguments.command == "record":
        write_record(arguments.out, record_everything(arguments.only))
    elif arguments.command == "check":
        sys.exit(check_entries(arguments.only))
    else:
        sys.exit(compare_records(arguments.old, arguments.new, arguments.tolerance))


if __name__ == "__main__":
    main()
