"""Detection of label leakage of selectors by the independent reader, on four data sets.

A job fits an explainer with a seed to a black box and measures it as `fit-explainer` does: on the texts that select the
epoch.

    planted     planted-code, 8,000 texts, k = 5; the words that decide are known
    imdb        10,000 reviews, k = 10; black box: the network of Bai et al. 2021, Table 6
    yelp        4,455 reviews, k = 5; black box: TF-IDF and logistic regression, without punctuation
    reviews600  600 sentences of Rotten Tomatoes, k = 3; black box: the network of Table 6

    l2x-y             L2X conditioned on the prediction, without a mitigation
    pretrained-y      the same with random-pretraining
    l2x               L2X that is not conditioned on the prediction
    leave-one-out     the k words whose deletion lowers the predicted probability most
    truth             planted alone: the words that decide

The last two have no approximator.  They are scored as if one recovered every label, the hardest case for the reader.
Their gap to the black box is 0, so the rule of two gaps cannot warn: these rows do not test it.

    padded-y, padded-neutral-y     imdb alone: variant released, in which padding can be selected; mask-neutral
    neutral-y                      mask-neutral where only words can be selected
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from steadygaze.adapters.transformer_network import TransformerOutput
from steadygaze.core.maths.distributions import top_k
from steadygaze.core.types import Batch
from steadygaze.data.batches import Data, by_length, collate
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.explainer import PREDICTED, class_balanced
from steadygaze.explainers.learned.fitted_explainer import FitContext, QueriedTexts, measure_selection
from steadygaze.explainers.learned.independent_reader import ReaderFit, read, uniform_subsets
from steadygaze.explainers.learned.l2x import L2X
from steadygaze.explainers.learned.removal_effects import predict_selected
from steadygaze.explainers.learned.text_inputs import TextInputs, vocabulary
from steadygaze.explainers.learned.text_networks import APPROXIMATORS, as_keras
from steadygaze.models.inference import Capability, Model
from steadygaze.results.leakage_warnings import by_measure, has_leakage, leakage_warnings, selection_rows
from steadygaze.training.progress import SilentWatcher
from studies import jobs
from studies.black_boxes.texts import Texts, load_black_box, make_data, probabilities, select_rows
from studies.independent_reader.data import prepare
from studies.independent_reader.plan import PRETRAINING_EPOCHS, ROWS, SELECTOR_EPOCHS, Job, K, plan
from studies.jobs import load_arrays

MAX_TEXTS = 400
"""Texts of the rows without an approximator."""


class TfidfModel(Model):
    """TF-IDF features and logistic regression of scikit-learn, over the ids of words."""

    capabilities: frozenset[Capability] = frozenset()
    idf: Tensor
    weight: Tensor
    bias: Tensor

    def __init__(self, arrays: dict[str, Any]) -> None:
        super().__init__()
        for name in ("idf", "weight", "bias"):
            self.register_buffer(name, torch.from_numpy(arrays[name]))  # of each word; 0: not a feature
        self.device_parameter = nn.Parameter(torch.zeros(()))  # Model.device is that of the first parameter

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> TransformerOutput:
        idf = self.idf[batch.ids] * batch.present
        same_word = (batch.ids.unsqueeze(1) == batch.ids.unsqueeze(2)) & batch.present.unsqueeze(1)
        norm = (
            (same_word.sum(-1) * idf**2).sum(-1).sqrt().clamp_min(1e-12)
        )  # Σ_tokens count·idf² = Σ_words (count·idf)²
        score = (idf * self.weight[batch.ids]).sum(-1) / norm + self.bias
        return TransformerOutput(None, torch.stack([-score / 2, score / 2], -1).float())


@dataclass(frozen=True)
class AnnotatedTexts:
    texts: Texts
    opinion: Tensor  # (V,) words that decide the label, or whose human sentiment is not neutral
    features: Tensor | None  # (V,) words that are features of the black box; None: all


@lru_cache(maxsize=1)
def load_texts(corpus: str, out: Path) -> AnnotatedTexts:
    arrays = load_arrays(out / f"{corpus}.npz")
    data, count = make_data(arrays), int(arrays["train"])
    train, held_out = select_rows(data, np.arange(count)), select_rows(data, np.arange(count, len(data)))
    features = torch.from_numpy(arrays["seen"]) if "seen" in arrays else None
    texts = Texts(arrays["vocabulary"].tolist(), train, held_out, held_out)
    return AnnotatedTexts(texts, torch.from_numpy(arrays["opinion"]), features)


@lru_cache(maxsize=1)
def black_box(corpus: str, out: Path, device: str) -> Model:
    """One black box for all seeds."""
    if corpus == "yelp":
        return TfidfModel(load_arrays(out / "yelp.npz")).to(torch.device(device)).eval().requires_grad_(False)
    return load_black_box(corpus, load_texts(corpus, out).texts, out, torch.device(device))


def run_job(job: Job, out: Path, device: str) -> dict[str, Any]:
    annotated, model = load_texts(job.corpus, out), black_box(job.corpus, out, device)
    measure = _measure_l2x if job.row in ROWS else _measure_untrained
    return measure(job, annotated, model, torch.device(device))


def _measure_l2x(job: Job, annotated: AnnotatedTexts, model: Model, device: torch.device) -> dict[str, Any]:
    texts, settings = annotated.texts, ROWS[job.row]
    pretraining, selector = PRETRAINING_EPOCHS[job.corpus], SELECTOR_EPOCHS[job.corpus]
    if settings.get("mitigation") == "random-pretraining":
        epochs: dict[str, Any] = {"pretraining_epochs": pretraining, "epochs": selector}
    else:
        epochs = {"epochs": pretraining + selector}
    length: dict[str, Any] = {"length": texts.length} if settings.get("variant") == "released" else {}
    config = L2X(k=K[job.corpus], **settings, **epochs, **length)
    splits = [QueriedTexts(part, probabilities(model, part)) for part in (texts.train, texts.validation)]
    learned = FitContext(texts.vocabulary, "words", SilentWatcher(), device, job.seed).learn(config, model, *splits)
    explainer = learned.explainer(texts, device)
    measures = measure_selection(model, explainer, texts.validation, "pad")
    ids = _selected_ids(lambda batch: explainer.explain(model, batch).weights > 0, model, texts.validation)
    return _record(measures, ids, annotated, {"explainer": "l2x", "mitigation": config.mitigation})


def _measure_untrained(job: Job, annotated: AnnotatedTexts, model: Model, device: torch.device) -> dict[str, Any]:
    """A selection without an approximator, scored as if an approximator recovered every label from it."""
    texts, k = annotated.texts, K[job.corpus]
    part = select_rows(texts.validation, np.arange(min(MAX_TEXTS, len(texts.validation))))
    words = vocabulary(texts.train, texts.vocabulary, "words")
    table = words.table(texts.vocabulary).to(device)
    inputs = [
        TextInputs(split, probabilities(model, split), table, device) for split in (texts.train, texts.validation, part)
    ]
    make = partial(_approximator, len(words.words))
    reader = ReaderFit(make, uniform_subsets(k), inputs[0], inputs[1], device, job.seed).execute()
    explainer = EXPLAINERS["leave-one-out"]()
    parts: list[dict[str, Tensor]] = []
    ids: list[Tensor] = []
    for rows in by_length(part, 16):
        batch = collate(part, rows).to(device)
        logits = model(batch).logits
        if job.row == "truth":
            selected = top_k(annotated.opinion.to(device)[batch.ids].double(), batch.mask, k)
        else:
            selected = top_k(explainer.explain(model, batch).weights, batch.mask, k)
        views = inputs[2].views(rows)
        approximated = 100.0 * torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1])
        selected_logits = predict_selected(model, batch, selected, "pad")
        readings = read(reader, views, selected.float(), uniform_subsets(k), approximated)
        agreement = (selected_logits.argmax(-1) == logits.argmax(-1)).double()
        values = {
            **readings.measures(logits, selected_logits),
            "post-hoc-accuracy": agreement,
            PREDICTED: logits.argmax(-1),
        }
        parts.append({name: value.double().cpu() for name, value in values.items()})
        ids.append(batch.ids[selected].cpu())
    measures = class_balanced({name: torch.cat([scores[name] for scores in parts]) for name in parts[0]})
    return _record(measures, torch.cat(ids), annotated, {"explainer": job.row})


def _approximator(words: int) -> nn.Module:
    return as_keras(APPROXIMATORS["simple"](words, 2, L2X().dimension))


def _selected_ids(select: Any, model: Model, data: Data) -> Tensor:
    """The ids of all selected words."""
    ids = []
    for rows in by_length(data, 128):
        batch = collate(data, rows).to(model.device)
        ids.append(batch.ids[select(batch)].cpu())
    return torch.cat(ids)


def _record(
    measures: dict[str, Tensor], ids: Tensor, annotated: AnnotatedTexts, settings: dict[str, Any]
) -> dict[str, Any]:
    values = {name: numbers.tolist() for name, numbers in measures.items()}
    rows = selection_rows(values, values.pop(PREDICTED), ("0", "1"), settings)
    numbers = {row.measure: round(row.value, 4) for row in rows if "class" not in row.settings}
    classes = {f"{row.measure}={row.settings['class']}": round(row.value, 4) for row in rows if "class" in row.settings}
    lows = {f"{row.measure} low": round(row.interval[0], 4) for row in rows if "gap" in row.measure and row.interval}
    features = annotated.features
    unseen = {} if features is None else {"unseen-share": float((~features[ids]).double().mean())}
    return {
        **numbers,
        **classes,
        **lows,
        **unseen,
        "opinion-share": float(annotated.opinion[ids].double().mean()),
        "leaks": has_leakage(by_measure(rows)),
        "warnings": [warning.sentence for warning in leakage_warnings(rows)],
        "n": rows[0].n,
    }


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    """The texts are prepared once."""

    data: str | None = field(default=None, metadata={"help": "folder of the corpora, for --prepare"})
    prepare: bool = field(default=False, metadata={"help": "write the texts as token ids, and train nothing"})
    seeds: int = 5


def run(options: Options) -> None:
    if options.prepare:
        assert options.data is not None, "--prepare needs --data"
        return prepare(options.out, options.data)
    planned = [job for job in plan(options.seeds) if re.search(options.only, job.id)]
    for corpus in sorted({job.corpus for job in planned}):  # one black box for all workers
        black_box(corpus, options.out, options.device)
    return jobs.run(options, lambda: planned, partial(run_job, out=options.out, device=options.device))
