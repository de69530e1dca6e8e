"""SEAT under all readings of its constants: a sweep on four two-class data sets, with collapse statistics and probes.

    python bench/seat_sweep.py --out DIR --data DIR --glove FILE --synonyms DIR --records FILE
                               [--workers 14] [--device cuda] [--seconds N] [--only REGEX] [--limit N] [--epochs N]

One cell trains the models of one block as one program on a GPU and measures each of them:

    vanilla      with scores divided by 1, 2, 4, 8 and 16, three seeds; and word-at, anchored, consensus
    paper, joint R x λ1 x λ2 x divergence: 72 settings, three seeds, from the vanilla model of the same seed
    released     λ2 x radius x clamp: 36 settings, three seeds, fresh weights

Data: SST-2, Rotten Tomatoes, TweetEval hate, and TweetEval emotion with anger and joy alone, as in the paper.
A run can be stopped and resumed: finished cells are not repeated.  `--records` has one line per model and one for each
of its probes on a grid of radii.
"""

import argparse
import json
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from sklearn.metrics import f1_score
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, nll_loss

import stability
import stability_models
from stability import head_commit
from stability_models import TRAINING_TABLE, Study, divide_scores
from stability_probe import measure_values, synonym_tables
from steadygaze.core.atomic_files import write_text
from steadygaze.core.maths.collapse import detect_collapse
from steadygaze.core.maths.distributions import jensen_shannon, top_k_overlap
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch, OnProgress
from steadygaze.data.corpora import load_corpus
from steadygaze.estimator.resumable_training import ClassifierFit, columns, fit_many
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.explainers.attention import Attention
from steadygaze.models import inference
from steadygaze.models.inference import Model, with_gradients
from steadygaze.perturbations.gradient_ascent import ascend
from steadygaze.properties.audit_case import AuditCase
from steadygaze.properties.probes.text_perturbations import embedding_noise, pgd_on_attention
from steadygaze.properties.protocols.faithfulness import faithfulness
from steadygaze.properties.protocols.stability import stability as stability_protocol
from steadygaze.results.audit_config import ProbeConfig
from steadygaze.study.cell_record import Cell, Output, cell_folder, read_record
from steadygaze.study.code_version import code_version
from steadygaze.study.engine import choose_executor, run_round

DATA = {"sst2": "sst2", "rotten_tomatoes": "rotten_tomatoes", "hate": "tweet_hate", "emotion-2": "tweet_emotion"}
TWO_EMOTIONS = ("anger", "joy")
SEEDS = 3
RADII, STABILITY, OVERLAP = (1e-3, 1e-2, 1e-1, 0.5), (1.0, 30.0, 1000.0), (0.0, 1.0, 143.0)
DIVERGENCES = ("kl", "cross-entropy")
RELEASED_OVERLAP, RELEASED_RADII = (0.0, 1.0, 10.0, 20.0, 143.0, 1000.0), (1e-3, 1e-2, 3e-2)
BASELINES: dict[str, dict[str, Any]] = {"word-at": {"epsilon": 0.2}, "anchored": {}, "consensus": {}}
TEMPERATURES = (1.0, 2.0, 4.0, 8.0, 16.0)
PROBED = 500
"""Texts of the test split that are probed; macro-F1 is that of the whole split."""
GRID_RADII = (1e-3, 1e-2, 5e-2, 1e-1)
"""Radii of the perturbation of an entry of a word vector; the authors use 0.001."""
SWEEP_RADII = (1e-3,)
"""The radii for models of the sweep."""
K = 7


def blocks() -> Iterator[tuple[str, str, list[dict[str, Any]], bool]]:
    """Name, technique, settings and whether the models start from vanilla, for each block of one data set."""
    for clamp in (False, True):
        for radius in RELEASED_RADII:
            base = {"variant": "released", "embedding_radius": radius, "clamp": clamp}
            name = f"released.r{radius:g}" + ".clamp" * clamp
            yield name, "seat", [{**base, "overlap": overlap} for overlap in RELEASED_OVERLAP], False
    for variant in ("paper", "joint"):
        for divergence in DIVERGENCES:
            for radius in RADII:
                base = {"variant": variant, "divergence": divergence, "radius": radius}
                settings = [{**base, "stability": s, "overlap": o} for s in STABILITY for o in OVERLAP]
                yield f"{variant}.{divergence}.r{radius:g}", "seat", settings, True


class SweepStudy(Study):
    def examples(self, setting: str, split: str) -> list[Any]:
        return list(_split(setting, split, self.data, self.limit))


@cache
def _split(setting: str, split: str, data: Path, limit: int | None) -> tuple[Any, ...]:
    examples = load_corpus(DATA[setting], data_dir=data).splits[split]
    if setting == "emotion-2":
        examples = [example for example in examples if example.label in TWO_EMOTIONS]
    return tuple(examples[:: max(1, len(examples) // limit) if limit else 1])


def fit(
    study: Study, setting: str, technique: str, settings: Sequence[dict[str, Any]], references: Sequence[Path]
) -> list[tuple[dict[str, Any], int, TextClassifier]]:
    """(settings, seed, model) of each model of a block, trained at the same time."""
    stability_models._read_vectors_once()
    table = str(study.synonyms / TRAINING_TABLE)
    keys = [(values, seed) for values in settings for seed in range(SEEDS)]
    fits = []
    for values, seed in keys:
        classifier = TextClassifier(
            "bilstm",
            technique,
            seed=seed,
            epochs=study.epochs,
            vectors=study.glove,
            settings={**values, "synonyms": table},
            device=study.device,
            verbose=False,
        )
        reference = [stability_models.load(references[seed], device=study.device)] if references else []
        fits.append(ClassifierFit(classifier, reference))
    train, validation = (columns(study.examples(setting, split)) for split in ("train", "validation"))
    models = fit_many(fits, *train, validation=validation)
    return [(values, seed, model) for (values, seed), model in zip(keys, models, strict=True) if model is not None]


def reference_cell(study: Study, setting: str, folder: Path, on_progress: OnProgress) -> Output:
    """Vanilla models, which the others start from or are compared with."""
    for _, seed, clf in fit(study, setting, "vanilla", [{}], []):
        clf.save(folder / f"model-{seed}")
    return Output({"rows": []})


def tempered_cell(
    study: Study, setting: str, needs: str, temperature: float, folder: Path, on_progress: OnProgress
) -> Output:
    """Vanilla models with divided scores; 1: unchanged."""
    paths, rows = _models(study, needs), []
    for seed, path in enumerate(paths):
        clf = stability_models.load(path, device=study.device)
        divide_scores(clf.stored_.model, temperature)
        row = {"row": "vanilla", "settings": {"temperature": temperature}}
        rows.append(measure(study, setting, clf, paths, seed, GRID_RADII) | row)
    return Output({"rows": rows})


def baseline_cell(
    study: Study, setting: str, needs: str, technique: str, values: dict[str, Any], folder: Path, _: OnProgress
) -> Output:
    """A technique that SEAT is compared with."""
    paths = _models(study, needs)
    models, row = fit(study, setting, technique, [values], []), {"row": technique, "settings": values}
    return Output({"rows": [measure(study, setting, clf, paths, seed, GRID_RADII) | row for _, seed, clf in models]})


def _models(study: Study, needs: str) -> list[Path]:
    return [cell_folder(study.out, needs) / f"model-{seed}" for seed in range(SEEDS)]


def block_cell(
    study: Study,
    setting: str,
    technique: str,
    settings: list[dict[str, Any]],
    needs: str,
    starts: bool,
    folder: Path,
    on_progress: OnProgress,
) -> Output:
    paths, rows = _models(study, needs), []
    for values, seed, clf in fit(study, setting, technique, settings, paths if starts else []):
        radii = GRID_RADII if values["variant"] == "released" else SWEEP_RADII
        row = {"row": f"seat-{values['variant']}", "settings": values}
        rows.append(measure(study, setting, clf, paths, seed, radii) | row)
    return Output({"rows": rows})


def measure(
    study: Study, setting: str, clf: TextClassifier, references: Sequence[Path], seed: int, radii: Sequence[float]
) -> dict[str, Any]:
    """Scores, collapse statistics, the probes of the audit, and the authors' probes on a grid of radii."""
    stored = clf.stored_
    test = study.examples(setting, "test")
    classes = list(stored.description.classes)
    data = stored.data([e.text for e in test], None)
    outputs = inference.split_outputs(stored.model, data)
    predicted = outputs.logits.argmax(-1).numpy()
    record: dict[str, Any] = {
        "data": setting,
        "seed": seed,
        "macro-f1": float(f1_score([classes.index(e.label) for e in test], predicted, average="macro")),
        "confidence": float(outputs.logits.double().softmax(-1).amax(-1).mean()),
        "margin": float((outputs.logits[:, 1] - outputs.logits[:, 0]).abs().double().mean()),
        "n": len(test),
    }
    probed = test[:: max(1, len(test) // PROBED)]
    data = stored.data([e.text for e in probed], None)
    reference = stability_models.load(references[seed], device=study.device).stored_
    anchor = inference.split_outputs(reference.model, reference.data([e.text for e in probed], None))
    outputs = inference.split_outputs(stored.model, data)
    weights, mask = outputs.weights.double(), outputs.mask
    collapse = detect_collapse(weights, mask, anchor.weights.double(), K, ids=outputs.ids)
    record |= {
        "normalized-entropy": collapse.normalized_entropy,
        "distance-to-uniform": collapse.distance_to_uniform,
        "collapsed": collapse.collapsed,
        "overlap": collapse.overlap,
        "shift-from-reference": float(jensen_shannon(weights, anchor.weights.double(), mask).mean()),
        "flips-from-reference": float((outputs.logits.argmax(-1) != anchor.logits.argmax(-1)).double().mean()),
        "probed": len(probed),
    }
    plain = stability_models.ProbedModel(stored, stored.model, stored.tokenizer.size)
    tables = synonym_tables(study, plain, ["3-synonyms"])
    config = ProbeConfig(sample=len(data))
    case = AuditCase(stored.model, data, {"attention": Attention()}, config, substitutions=tables)
    values = measure_values(case, (stability_protocol, faithfulness))
    record |= {name: float(value.nanmean()) for name, value in values.items()}
    record["grid"] = [probe for radius in radii for probe in grid_probes(case, radius)]
    return record


def grid_probes(case: AuditCase, radius: float) -> Iterator[dict[str, Any]]:
    """The measures of Table 1 under three perturbations of word vectors, with and without clamping to [0, 1]."""
    key, size = RandomKey(0), torch.tensor(radius)
    moves: dict[str, Callable[[Model, Batch], Any]] = {
        "uniform": lambda m, b: embedding_noise(m, b, size.to(b.ids.device), key.child(1)).embedded,
        "pgd-prediction": lambda m, b: pgd_on_prediction(m, b, radius, key.child(2)),
        "pgd-attention": lambda m, b: pgd_on_attention(m, b, size.to(b.ids.device), key.child(3)).embedded,
    }
    for name, move in moves.items():
        for clamped in (False, True) if name == "pgd-prediction" else (False,):
            parts: dict[str, list[Tensor]] = {}
            for _, batch in case.batches():
                for measure_name, value in shift(case.model, batch, move(case.model, batch), clamped).items():
                    parts.setdefault(measure_name, []).append(value.cpu())
            means = {measure_name: float(torch.cat(values).mean()) for measure_name, values in parts.items()}
            yield {"probe": name, "radius": radius, "clamp": clamped, **means}


def pgd_on_prediction(model: Model, batch: Batch, radius: float, key: RandomKey) -> Tensor:
    """x + r after ten sign steps inside the ball that lower the probability of the predicted class.  (B,T,E)"""
    with inference.inference(model):
        embedded = model.embed(batch)
        predicted = model(batch, embedded).logits.argmax(-1)
    start = embedding_noise(model, batch, torch.tensor(radius, device=embedded.device), key).embedded - embedded

    def loss(vectors: Tensor) -> Tensor:
        return nll_loss(model(batch, vectors).logits.double().log_softmax(-1), predicted, reduction="none")

    with with_gradients(model):
        options: dict[str, Any] = {"radius": radius, "norm": "linf", "steps": 10, "keep": batch.mask, "best": True}
        return embedded + ascend(loss, start, center=embedded, **options)


def shift(model: Model, batch: Batch, embedded: Tensor, clamped: bool) -> dict[str, Tensor]:
    """Change of attention and prediction.  `bce-with-logits` is the vanilla "TVD" of the authors' code.  (B,) each"""
    with inference.inference(model):
        before = model(batch)
        after = model(batch, embedded.clamp(0, 1) if clamped else embedded)
    old, new = before.weights.double(), after.weights.double()
    p, q = before.logits.double().softmax(-1), after.logits.double().softmax(-1)
    return {
        "jensen-shannon": jensen_shannon(old, new, batch.mask),
        "top-k-overlap": top_k_overlap(old, new, batch.mask, K),
        "tvd": (p - q).abs().sum(-1) / 2,
        "label-flip": (p.argmax(-1) != q.argmax(-1)).double(),
        "bce-with-logits": binary_cross_entropy_with_logits(q[:, 1], p[:, 1], reduction="none"),
    }


def cells(study: SweepStudy) -> list[Cell]:
    inputs = {"code": code_version(), "epochs": study.epochs, "limit": study.limit, "device": study.device}
    references, others = [], []
    for setting in DATA:
        needs = f"{setting}.reference"
        works: dict[str, Callable[[Path, OnProgress], Output]] = {
            f"vanilla.t{t:g}": partial(tempered_cell, study, setting, needs, t) for t in TEMPERATURES
        }
        works |= {name: partial(baseline_cell, study, setting, needs, name, v) for name, v in BASELINES.items()}
        works |= {
            name: partial(block_cell, study, setting, technique, settings, needs, starts)
            for name, technique, settings, starts in blocks()
        }
        references.append(Cell(needs, needs, {**inputs, "data": setting}, partial(reference_cell, study, setting)))
        for name, work in works.items():
            full = f"{setting}.{name}"
            others.append(Cell(full, full, {**inputs, "block": full}, work, (needs,)))
    return references + others


def write_records(study: Study, every: Sequence[Cell], file: Path, commit: str) -> None:
    lines = [json.dumps({"commit": commit, "torch": torch.__version__, "device": study.device, "seeds": SEEDS})]
    for cell in every:
        record = read_record(cell_folder(study.out, cell.name), cell.key)
        if record is not None and record.is_finished:
            lines += [json.dumps({**row, "block": cell.name}) for row in record.result["rows"]]
    write_text(file, "".join(f"{line}\n" for line in lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for name in ("out", "data", "glove", "synonyms", "records"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--limit", type=int, help="texts per split, for a trial run")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--only", default="")
    parser.add_argument("--commit", default=head_commit())
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    paths = (path.resolve() for path in (options.out, options.data, options.glove, options.synonyms))
    study = SweepStudy(*paths, options.device, options.epochs, options.limit)
    every, start = cells(study), time.monotonic()
    chosen = [cell for cell in every if re.search(options.only, cell.name) or cell.name.endswith(".reference")]

    def save() -> None:
        write_records(study, every, options.records, options.commit)

    def save_often() -> None:
        while True:
            time.sleep(20)
            save()

    def on_progress(activity: str, done: int, total: int) -> None:
        if ": done" in activity or "failed" in activity:
            print(f"{time.monotonic() - start:.0f} {done}/{total} {activity}", flush=True)
        if time.monotonic() - start > options.seconds:
            raise stability.TimeIsUpError

    threading.Thread(target=save_often, daemon=True).start()
    try:
        with choose_executor("local", options.workers, options.device, 1 << 30) as executor:
            run_round(chosen, study.out, executor, on_progress)
    except stability.TimeIsUpError:
        print("stopped at the limit", flush=True)
    finally:
        save()


if __name__ == "__main__":
    import seat_sweep  # workers import the cells from modules, not from the script

    seat_sweep.main()
