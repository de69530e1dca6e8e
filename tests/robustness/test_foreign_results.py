"""Bundles, policies, explainers, checkpoints, comparisons, caches and tables that were damaged or tampered with."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

import steadygaze as sg
from robustness.conftest import run
from robustness.damage import JSON, SPECIAL, WEIGHTS, Damage, changed, content, filled, state, tensors
from robustness.harness import assert_clean
from steadygaze.explainers.learned.answer_cache import AnswerCache
from study.tiny import DATA, quicken
from study.tiny import config_with as comparison
from study.tiny import run as compare
from training.toys import TOYS, Recorder, make_run

TEXT = "the film was good and fine"
TWO = ("vanilla", "word-at")


@pytest.fixture(scope="session")
def results(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template, with bundle/ and explainer/."""
    place = tmp_path_factory.mktemp("results") / "place"
    shutil.copytree(template, place)
    with pytest.MonkeyPatch.context() as patch:
        quicken(patch)
        patch.setattr("steadygaze.explainers.learned.selector_training.STEPS", 25)
        audit = ["audit", "{}/model", "--data", "{}/films.csv", "--limit", "6", "--sample", "2"]
        assert_clean(run(place, *audit, "--policy", "{}/policy.toml", "--bundle", "{}/bundle"), {0}, None)
        fit = ["fit-explainer", "{}/model", "--data", "{}/films.csv", "--k", "2", "--out", "{}/explainer", "--quiet"]
        quick = ["--set", "epochs=2", "--set", "hidden=8", "--set", "dimension=6"]
        assert_clean(run(place, *fit, *quick), {0}, None)
    return place


@pytest.fixture
def copy(results: Path, tmp_path: Path) -> Path:
    shutil.copytree(results, tmp_path / "place")
    return tmp_path / "place"


VERIFY = ["audit", "--verify", "{}/bundle"]
BUNDLE: dict[str, tuple[str, Damage]] = {
    **{f"manifest-{name}": ("manifest.json", damage) for name, damage in {**SPECIAL, **JSON}.items()},
    **{f"report-{name}": ("report.json", damage) for name, damage in SPECIAL.items()},
    **{f"page-{name}": ("report.html", damage) for name, damage in SPECIAL.items()},
    "files": ("manifest.json", changed(files={"../model/config.json": "0"})),
    "files-list": ("manifest.json", changed(files=["report.html"])),
    "settings": ("manifest.json", changed(settings=7)),
    "schema": ("manifest.json", changed(schema=[])),
    "seeds": ("manifest.json", changed(seeds={"a": 1})),
}


@pytest.mark.sweep(split="damage")
@pytest.mark.parametrize("damage", BUNDLE)
def test_a_damaged_bundle_is_refused(damage: str, copy: Path) -> None:
    name, spoil = BUNDLE[damage]
    spoil(copy / "bundle" / name)
    assert_clean(run(copy, *VERIFY, limit=30), codes={1, 2})


def repeated_word(path: Path) -> None:
    """The first word replaces the last one: there are as many as the weights have."""
    words = json.loads(path.read_text())
    path.write_text(json.dumps([*words[:-1], words[0]]))


EXPLAINER: dict[str, tuple[str, Damage]] = {
    **{f"config-{name}": ("config.json", damage) for name, damage in {**SPECIAL, **JSON}.items()},
    **{f"words-{name}": ("vocabulary.json", damage) for name, damage in {**SPECIAL, **JSON}.items()},
    **{f"weights-{name}": ("model.safetensors", damage) for name, damage in {**SPECIAL, **WEIGHTS}.items()},
    "words-twice": ("vocabulary.json", repeated_word),
    "settings": ("config.json", changed(settings={"hidden": 10**9})),
    "settings-list": ("config.json", changed(settings=[])),
    "k": ("config.json", changed(settings={"k": 2**62})),
    "explainer": ("config.json", changed(explainer=["l2x"])),
    "classes": ("config.json", changed(classes=7)),
    "inputs": ("config.json", changed(inputs="images")),
    "black_box": ("config.json", changed(black_box=[1])),
    "rows": ("config.json", changed(rows=7)),
}


@pytest.mark.sweep(split="damage")
@pytest.mark.parametrize("damage", EXPLAINER)
def test_a_damaged_explainer_is_refused(damage: str, copy: Path) -> None:
    name, spoil = EXPLAINER[damage]
    spoil(copy / "explainer" / name)
    expected = {2} if damage not in ("black_box", "rows") else {0, 2}
    assert_clean(run(copy, "explain", "{}/model", TEXT, "--explainer", "{}/explainer", limit=30), codes=expected)


def table(**columns: Any) -> Damage:
    return lambda path: parquet.write_table(pa.table(columns), path)


def nanoseconds() -> Any:
    return pa.array([1, 2], pa.timestamp("ns"))


TABLES: dict[str, tuple[str, Damage]] = {
    **{f"csv-{name}": ("texts.csv", damage) for name, damage in SPECIAL.items()},
    **{f"{suffix}-sparse": (f"texts.{suffix}", SPECIAL["sparse"]) for suffix in ("tsv", "jsonl", "txt")},
    **{f"parquet-{name}": ("texts.parquet", damage) for name, damage in SPECIAL.items()},
    "timestamps": ("texts.parquet", table(text=nanoseconds(), label=[0, 1])),
    "timestamp-labels": ("texts.parquet", table(text=["a", "b"], label=nanoseconds())),
    "durations": ("texts.parquet", table(text=pa.array([1, 2], pa.duration("ns")), label=[0, 1])),
    "decimals": ("texts.parquet", table(text=["a", "b"], label=pa.array([1, 2], pa.decimal128(30)))),
    "binary": ("texts.parquet", table(text=pa.array([b"\xff", b"b"]), label=[0, 1])),
    "dates": ("texts.parquet", table(text=pa.array([2**31 - 1, 1], pa.date32()), label=[0, 1])),
    "not-parquet": ("texts.parquet", content(b"PAR1" + b"\xff" * 100 + b"PAR1")),
    "deep": ("texts.jsonl", content(b'{"text": ' + b"[" * 99_999)),
    "deep-value": ("texts.jsonl", content(b'{"text": "a", "label": ' + b"[" * 200 + b"]" * 200 + b"}\n")),
    "digits": ("texts.jsonl", content(b'{"text": "a", "label": 1' + b"0" * 400 + b"}\n")),
    "not-utf-8": ("texts.jsonl", content(b'{"text": "\xff", "label": 1}\n')),
}


@pytest.mark.sweep
@pytest.mark.parametrize("damage", TABLES)
@pytest.mark.parametrize("command", ["train", "audit"])
def test_a_damaged_table_is_refused(damage: str, command: str, place: Path) -> None:
    name, spoil = TABLES[damage]
    spoil(place / name)
    words = {
        "train": ["train", f"{{}}/{name}", "--out", "{}/new", "--quiet"],
        "audit": ["audit", "{}/model", "--data", f"{{}}/{name}"],
    }
    assert_clean(run(place, *words[command], limit=30), codes={2})


POLICY_JSON, TABLE_JSON = ("deep-list", "not-utf-8", "empty", "10**400"), ("empty", "deep-list", "10**400", "a-list")
READ: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "policy.toml": (POLICY_JSON, ["audit", "{}/model", "--data", "{}/films.csv", "--policy", "{}/policy.toml"]),
    "words.jsonl": (TABLE_JSON, ["audit", "{}/model", "--data", "{}/films.csv", "--synonyms", "{}/words.jsonl"]),
    "glove.txt": (("not-utf-8",), ["train", "{}/films.csv", "--vectors", "{}/glove.txt", "--out", "{}/new", "--quiet"]),
}
"""File -> its damages beside those of all files, and a command that reads it."""


@pytest.mark.parametrize(
    ("file", "damage"), [(file, damage) for file, (more, _) in READ.items() for damage in (*SPECIAL, *more)]
)
def test_a_damaged_policy_table_or_file_of_vectors_is_refused(file: str, damage: str, place: Path) -> None:
    {**SPECIAL, **JSON}[damage](place / file)
    result = run(place, *READ[file][1], limit=30)
    assert_clean(result, codes={2})
    assert file in result.err


def test_links_among_erasers_documents_that_form_a_loop_are_refused(place: Path) -> None:
    (place / "eraser" / "docs").mkdir(parents=True)
    row = {"annotation_id": "a", "classification": "x", "evidences": [], "docids": ["a"]}
    (place / "eraser" / "train.jsonl").write_text(json.dumps(row) + "\n")
    SPECIAL["link-loop"](place / "eraser" / "docs" / "a")
    assert_clean(run(place, "train", "{}/eraser", "--out", "{}/new", "--quiet"), codes={2})


NAMES: list[list[str]] = [
    ["predict", "~nouser/model", TEXT],
    ["explain", "~nouser/model", TEXT],
    ["audit", "~nouser/model", "--data", "{}/films.csv"],
    ["train", "~nouser/a.csv", "--out", "{}/new"],
    ["train", "{}/films.csv", "--encoder", "transformer:~nouser/x", "--out", "{}/new", "--quiet"],
    ["audit", "--verify", "~nouser/bundle"],
    ["predict", "{}/loop", TEXT],
    ["explain", "{}/loop", TEXT],
    ["audit", "{}/loop", "--data", "{}/films.csv"],
    ["audit", "{}/model", "--data", "{}/loop"],
    ["audit", "--verify", "{}/loop"],
    ["train", "{}/films.csv", "--out", "{}/loop", "--quiet"],
    ["train", "{}/films.csv", "--encoder", "transformer:{}/loop", "--out", "{}/new", "--quiet"],
    ["compare", "{}/loop", "--techniques", "vanilla,seat", "--out", "{}/new", "--quiet"],
    ["compare", "{}/films.csv", "--techniques", "vanilla,seat", "--out", "{}/loop", "--quiet"],
    ["explain", "{}/model", TEXT, "--explainer", "{}/loop"],
    ["fit-explainer", "{}/model", "--data", "{}/films.csv", "--out", "{}/loop", "--quiet"],
    ["certify", "{}/model", "--data", "{}/films.csv", "--radius", "0.1", "--reference", "{}/loop"],
    ["predict", "{}/\udcff\udcfe", TEXT],
    ["predict", "{}/model", "--file", "{}/\udcff.csv"],
    ["predict", "{}/model", "--file", "{}/\udcff.parquet"],
    ["audit", "{}/model", "--data", "{}/\udcff.csv"],
    ["train", "{}/\udcff.csv", "--out", "{}/new", "--quiet"],
    ["train", "{}/films.csv", "--vectors", "{}/\udcff", "--out", "{}/new", "--quiet"],
    ["predict", "{}/" + "x" * 5000, TEXT],
    ["audit", "{}/model", "--data", "{}/" + "x" * 5000],
]


@pytest.mark.parametrize("words", NAMES, ids=lambda words: ascii(" ".join(words))[:60])
def test_names_that_lead_nowhere_are_refused(words: list[str], place: Path) -> None:
    (place / "loop").symlink_to("loop")
    result = run(place, *words, limit=30)
    assert result.code == 2, result.err
    assert result.changes == ()


NUMBERS: list[list[str]] = [
    ["fit-explainer", "{}/model", "--data", "{}/films.csv", "--out", "{}/new", "--quiet", "--k", str(2**80)],
    ["fit-explainer", "{}/model", "--data", "{}/films.csv", "--out", "{}/new", "--quiet", "--set", f"epochs={2**80}"],
    ["train", "{}/films.csv", "--out", "{}/new", "--quiet", "--technique", "seat", "--set", f"k={2**80}"],
    ["train", "{}/films.csv", "--out", "{}/new", "--quiet", "--technique", "seat", "--set", f"k={10**400}"],
    ["train", "{}/films.csv", "--out", "{}/new", "--quiet", "--set", f"hidden={2**80}"],
    ["train", "{}/films.csv", "--out", "{}/new", "--quiet", "--set", f"batch_size={2**80}"],
    ["train", "{}/films.csv", "--out", "{}/new", "--quiet", "--set", f"patience={10**400}"],
    ["train", "{}/films.csv", "--out", "{}/new", "--quiet", "--set", "hidden=" + "[" * 100_000],
    ["train", "{}/films.csv", "--out", "{}/new", "--quiet", "--set", "hidden=NaN"],
    ["train", "{}/films.csv", "--out", "{}/new", "--quiet", "--set", "learning_rate=1e999"],
    ["train", "{}/films.csv", "--out", "{}/new", "--quiet", "--epochs", str(2**80)],
    ["train", "{}/films.csv", "--out", "{}/new", "--quiet", "--max-length", str(2**80)],
    ["train", "{}/films.csv", "--out", "{}/new", "--quiet", "--batch-size", str(2**80)],
    ["train", "{}/films.csv", "--out", "{}/new", "--quiet", "--seed", str(2**80)],
    ["audit", "{}/model", "--data", "{}/films.csv", "--k", str(2**80)],
    ["audit", "{}/model", "--data", "{}/films.csv", "--limit", str(2**80), "--k", str(2**80)],
    ["audit", "{}/model", "--data", "{}/films.csv", "--sample", str(2**80), "--seed", str(2**80)],
    ["audit", "{}/model", "--data", "{}/films.csv", "--radius", "1e999"],
    ["compare", "{}/films.csv", "--techniques", "vanilla,seat", "--out", "{}/new", "--seeds", str(2**80)],
    ["train", "planted-reviews:sizes=[1000000000,1,1]", "--out", "{}/new", "--quiet"],
    ["train", "planted-reviews:sizes=[" + str(2**80) + ",1,1]", "--out", "{}/new", "--quiet"],
]


@pytest.mark.parametrize("words", NUMBERS, ids=lambda words: " ".join(words)[:90])
def test_numbers_beyond_all_bounds_are_refused(words: list[str], place: Path) -> None:
    assert_clean(run(place, *words, limit=30), codes={2})


HARMLESS: list[list[str]] = [
    ["certify", "{}/model", "--data", "{}/films.csv", "--radius", "0.1", "--k", str(2**80)],
    ["certify", "{}/model", "--data", "{}/films.csv", "--radius", "0.1", "--batch-size", str(2**80)],
    ["predict", "{}/model", TEXT, "--batch-size", str(2**80)],
]


@pytest.mark.parametrize("words", HARMLESS, ids=lambda words: " ".join(words)[:90])
def test_a_request_may_exceed_what_exists(words: list[str], place: Path) -> None:
    assert_clean(run(place, *words, limit=30), codes={0, 2})


def first_moment(change: Callable[[torch.Tensor], torch.Tensor]) -> Damage:
    def edit(state: dict[str, torch.Tensor]) -> None:
        name = next(name for name in sorted(state) if name.endswith("/exp_avg"))
        state[name] = change(state[name])

    return tensors(edit)


def without(part: str) -> Damage:
    return tensors(lambda state: state.pop(next(name for name in sorted(state) if part in name)))


CHECKPOINTS: dict[str, Damage] = {
    **SPECIAL,
    "nan": filled(float("nan")),
    "moment-cut": first_moment(lambda value: value.reshape(-1)[:-1].clone()),
    "moment-scalar": first_moment(lambda value: value.reshape(-1)[0].clone()),
    "moment-whole-numbers": first_moment(lambda value: value.long()),
    "moment-gone": without("/exp_avg"),
    "moments-gone": without("/step"),
    "moment-more": tensors(lambda state: state.update({"optimizer/99/exp_avg": torch.zeros(1)})),
    "moment-word": tensors(lambda state: state.update({"optimizer/x/exp_avg": torch.zeros(1)})),
    "best-cut": tensors(lambda state: state.update({"best/model.decoder.output.bias": torch.zeros(1)})),
    "best-gone": without("best/"),
    "now-cut": tensors(lambda state: state.update({"now/model.decoder.output.bias": torch.zeros(1)})),
    "random-cut": tensors(lambda state: state.update({"random/torch": torch.zeros(3, dtype=torch.uint8)})),
    "random-gone": without("random/"),
    "epoch": state("epoch", "one"),
    "epoch-negative": state("epoch", -1),
    "epoch-late": state("epoch", 10**6),
    "stage": state("stage", "first"),
    "stage-float": state("stage", 0.5),
    "identity": state("identity", [1]),
    "history": state("history", [1, 2]),
    "history-empty": state("history", []),
    "groups": state("groups", []),
    "groups-words": state("groups", "adam"),
    "groups-keys": state("groups", [{"params": [0]}]),
    "technique": state("technique", {"nonsense": 1}),
    "technique-list": state("technique", [1]),
    "best_score": state("best_score", None),
    "deep": state("history", json.loads("[" * 99 + "]" * 99)),
}


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints of two interrupted runs: anneal/ and distil/."""
    folder = tmp_path_factory.mktemp("interrupted")
    for name, epochs in (("anneal", 1), ("distil", 3)):
        with pytest.raises(KeyboardInterrupt):
            make_run(TOYS[name], folder=folder / name, watcher=Recorder(epochs=epochs)).execute()
    return folder


@pytest.mark.parametrize("damage", CHECKPOINTS)
def test_a_tampered_checkpoint_is_refused(damage: str, interrupted: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(interrupted / "anneal", tmp_path / "run"))
    CHECKPOINTS[damage](folder / "checkpoint.safetensors")
    with pytest.raises(sg.UserError, match=r"checkpoint\.safetensors|a run without|nonsense") as refusal:
        make_run(TOYS["anneal"], folder=folder, resume=True).execute()
    assert "\n" not in str(refusal.value)


FINISHED: dict[str, Damage] = {
    **{name: WEIGHTS[name] for name in ("nan", "cut", "one-missing", "huge-header", "no-header")},
    **{name: SPECIAL[name] for name in ("fifo", "dev-zero", "link-loop")},
    "best_epoch": state("best_epoch", [1]),
}


@pytest.mark.parametrize("damage", FINISHED)
def test_a_tampered_finished_stage_is_refused(damage: str, interrupted: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(interrupted / "distil", tmp_path / "run"))
    FINISHED[damage](folder / "finished-0.safetensors")
    with pytest.raises(sg.UserError):
        make_run(TOYS["distil"], folder=folder, resume=True).execute()


SETTINGS: dict[str, Damage] = {**JSON, **{name: SPECIAL[name] for name in ("fifo", "dev-zero", "link-loop")}}
VALUES, SEEDS = "vanilla-0/values.safetensors", "vanilla-seeds/values.safetensors"
CELLS: dict[str, tuple[str, Damage]] = {
    **{
        f"{part}-{name}": (file, WEIGHTS[name])
        for part, file in (("values", VALUES), ("seeds", "word-at-seeds/values.safetensors"))
        for name in ("cut", "half-precision", "no-header", "huge-shape")
    },
    "values-short": (VALUES, tensors(lambda t: t.update({k: v[:-1] for k, v in t.items()}))),
    "seeds-other": (SEEDS, tensors(lambda t: t.update({"x|y|0+1": t.pop(min(t))}))),
    "seeds-more": (SEEDS, tensors(lambda t: t.update({"more": t[min(t)].clone()}))),
    "report-facts": ("vanilla-0/report.json", changed(facts={})),
    "report-deep": ("vanilla-0/report.json", JSON["deep-object"]),
    **{f"record-{name}": ("vanilla-0/record.json", JSON[name]) for name in JSON},
}
COMPARE = ["compare", DATA, "--techniques", ",".join(TWO), "--seeds", "2", "--encoder", "average", "--epochs", "1"]
QUICK = ["--set", "hidden=4", "--set", "dimension=6", "--workers", "1", "--out", "{}/out", "--quiet"]


@pytest.fixture(scope="session")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("compared") / "out"
    with pytest.MonkeyPatch.context() as patch:
        quicken(patch)
        compare(out, comparison(techniques=TWO, seeds=2, synonyms=None))
    return out


@pytest.mark.sweep(keep=0)
@pytest.mark.parametrize("damage", SETTINGS)
def test_tampered_settings_of_a_comparison_are_refused(damage: str, compared: Path, tmp_path: Path) -> None:
    shutil.copytree(compared, tmp_path / "out")
    SETTINGS[damage](tmp_path / "out" / "settings.json")
    assert_clean(run(tmp_path, *COMPARE, *QUICK, limit=60), codes={2})


@pytest.mark.sweep(
    keep=0,
    slow=("values-cut", "seeds-huge-shape", "values-short", "seeds-other", "report-facts", "record-deep-list"),
)
@pytest.mark.parametrize("damage", CELLS)
def test_a_tampered_cell_runs_again(
    damage: str, compared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quicken(monkeypatch)
    shutil.copytree(compared, tmp_path / "out")
    name, spoil = CELLS[damage]
    spoil(tmp_path / "out" / "cells" / name)
    result = run(tmp_path, *COMPARE, *QUICK, limit=60)
    assert_clean(result, codes={0}, written=None)
    before, after = (
        {
            (technique["technique"], name): str([number["value"], number["seeds"]])  # as text: NaN differs from itself
            for technique in json.loads((out / "comparison.json").read_text())["techniques"]
            for name, number in technique["numbers"].items()
        }
        for out in (compared, tmp_path / "out")
    )
    assert before == after


CACHES: dict[str, Damage] = {
    **{name: SPECIAL[name] for name in ("fifo", "dev-zero", "link-loop", "folder")},
    "pickle": lambda path: np.save(path, np.array([{}], dtype=object), allow_pickle=True),
    "shape": lambda path: np.save(path, np.zeros(3)),
    "row-beyond": lambda path: np.save(path, np.array([[10.0**9, 0.5, 0.5]])),
    "row-negative": lambda path: np.save(path, np.array([[-1.0, 0.5, 0.5]])),
    "row-half": lambda path: np.save(path, np.array([[0.5, 0.5, 0.5]])),
    "nan": lambda path: np.save(path, np.array([[0.0, np.nan, 0.5]])),
    "cut": lambda path: content(path.read_bytes()[:-9])(path),
    "empty": content(b""),
}


@pytest.mark.parametrize("damage", CACHES)
def test_a_tampered_cache_of_answers_is_refused(damage: str, tmp_path: Path) -> None:
    AnswerCache(tmp_path / "kept", {"texts": "a"}).add(np.array([0, 1]), np.full((2, 2), 0.5))
    CACHES[damage](tmp_path / "kept" / "000000.npy")
    with pytest.raises(sg.UserError):
        AnswerCache(tmp_path / "kept", {"texts": "a"}).missing(3)


@pytest.mark.parametrize("damage", [*JSON, "fifo", "dev-zero"])
def test_a_tampered_identity_of_a_cache_is_refused(damage: str, tmp_path: Path) -> None:
    AnswerCache(tmp_path / "kept", {"texts": "a"}).add(np.array([0, 1]), np.full((2, 2), 0.5))
    {**JSON, **SPECIAL}[damage](tmp_path / "kept" / "identity.json")
    with pytest.raises(sg.UserError):
        AnswerCache(tmp_path / "kept", {"texts": "a"})


@pytest.mark.slow
def test_a_tampered_file_of_the_teacher_cache_counts_as_not_there(tmp_path: Path) -> None:
    plain = make_run(TOYS["distil"], teacher_cache=tmp_path / "teacher_cache").execute().state_dict()
    (file,) = (tmp_path / "teacher_cache").glob("*.safetensors")
    for damage in (WEIGHTS["nan"], WEIGHTS["cut"], WEIGHTS["one-missing"], WEIGHTS["transposed"], state_list):
        damage(file)
        again = make_run(TOYS["distil"], teacher_cache=tmp_path / "teacher_cache").execute().state_dict()
        assert all(torch.equal(value, again[name]) for name, value in plain.items())


def state_list(path: Path) -> None:
    """A history that is none."""
    from safetensors.torch import load_file, save_file

    save_file(load_file(path), path, {"history": "[1, 2]"})
