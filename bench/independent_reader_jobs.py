"""One job of bench/independent_reader.py: an explainer, and who recovers the predicted class from its selection."""

from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from black_box_texts import Table6, Texts, accuracy, probabilities, select, trained
from independent_reader import FIRST, OWN, ROWS, Job, K
from steadygaze.adapters.transformer_network import TransformerOutput
from steadygaze.core.maths.distributions import top_k
from steadygaze.core.ragged import TokenArray, row_starts
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

MOST = 400
"""Texts that leave-one-out is asked about."""


class TfidfModel(Model):
    """TF-IDF features and logistic regression of scikit-learn, over the ids of words."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    def __init__(self, known: Any) -> None:
        super().__init__()
        for name in ("idf", "weight", "bias"):
            self.register_buffer(name, torch.from_numpy(known[name]))  # of each word; 0: it is not seen
        self.nothing = nn.Parameter(torch.zeros(()))  # whose device is the model's

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> TransformerOutput:
        idf = self.idf[batch.ids] * batch.present
        alike = (batch.ids.unsqueeze(1) == batch.ids.unsqueeze(2)) & batch.present.unsqueeze(1)
        norm = (
            (alike.sum(-1) * idf**2).sum(-1).sqrt().clamp_min(1e-12)
        )  # Σ of tokens count·idf² is Σ of words (count·idf)²
        score = (idf * self.weight[batch.ids]).sum(-1) / norm + self.bias
        return TransformerOutput(None, torch.stack([-score / 2, score / 2], -1).float())


@dataclass(frozen=True)
class Known:
    texts: Texts
    opinion: Tensor  # (V,) words that decide, or that people find positive or negative
    seen: Tensor | None  # (V,) words that the black box can see; None: all


@lru_cache(maxsize=1)
def loaded(corpus: str, out: Path) -> Known:
    with np.load(out / f"{corpus}.npz", allow_pickle=False) as arrays:
        ids, lengths = arrays["ids"].astype(np.int32), arrays["lengths"].astype(np.int64)
        ragged = TokenArray(ids, np.ones(len(ids), np.bool_), row_starts(lengths), np.zeros(len(lengths), np.bool_))
        data, many = Data(ragged, None, arrays["label"].astype(np.int64)), int(arrays["train"])
        train, rest = select(data, np.arange(many)), select(data, np.arange(many, len(data)))
        seen = torch.from_numpy(arrays["seen"]) if "seen" in arrays else None
        texts = Texts(arrays["vocabulary"].tolist(), train, rest, rest)
        return Known(texts, torch.from_numpy(arrays["opinion"]), seen)


@lru_cache(maxsize=1)
def black_box(corpus: str, out: Path, device: str) -> Model:
    """One for all seeds."""
    texts, where = loaded(corpus, out).texts, torch.device(device)
    if corpus == "yelp":
        with np.load(out / "yelp.npz", allow_pickle=False) as arrays:
            return TfidfModel(arrays).to(where).eval().requires_grad_(False)
    file = out / f"{corpus}.safetensors"
    if not file.exists():
        made = trained(texts, where, epochs=5 if corpus == "imdb" else 15)
        print(corpus, "black box: train", accuracy(made, texts.train), "held out", accuracy(made, texts.validation))
        save_file({name: value.cpu() for name, value in made.state_dict().items()}, file)
    model = Table6(len(texts.vocabulary), texts.length)
    model.load_state_dict(load_file(file))
    return model.to(where).eval().requires_grad_(False)


def done(job: Job, out: Path, device: str) -> dict[str, Any]:
    known, model = loaded(job.corpus, out), black_box(job.corpus, out, device)
    run = _fitted if job.row in ROWS else _fixed
    return run(job, known, model, torch.device(device))


def _fitted(job: Job, known: Known, model: Model, device: torch.device) -> dict[str, Any]:
    texts, settings = known.texts, ROWS[job.row]
    staged = settings.get("mitigation") == "random-pretraining"
    first, own = FIRST[job.corpus], OWN[job.corpus]
    epochs = {"pretraining_epochs": first, "epochs": own} if staged else {"epochs": first + own}
    length = {"length": texts.length} if settings.get("variant") == "released" else {}
    how = L2X(k=K[job.corpus], **settings, **epochs, **length)
    splits = [QueriedTexts(part, probabilities(model, part)) for part in (texts.train, texts.validation)]
    learned = FitContext(texts.vocabulary, "words", SilentWatcher(), device, job.seed).learn(how, model, *splits)
    explainer = learned.explainer(texts, device)
    measures = measure_selection(model, explainer, texts.validation, "pad")
    kept = _selected(lambda batch: explainer.explain(model, batch).weights > 0, model, texts.validation)
    return _record(measures, kept, known, {"explainer": "l2x", "mitigation": how.mitigation})


def _fixed(job: Job, known: Known, model: Model, device: torch.device) -> dict[str, Any]:
    """A selection that nothing is trained on: judged as if a network recovered every label from it."""
    texts, k = known.texts, K[job.corpus]
    part = select(texts.validation, np.arange(min(MOST, len(texts.validation))))
    words = vocabulary(texts.train, texts.vocabulary, "words")
    table = words.table(texts.vocabulary).to(device)
    inputs = [
        TextInputs(split, probabilities(model, split), table, device) for split in (texts.train, texts.validation, part)
    ]
    make = partial(_approximator, len(words.words))
    reader = ReaderFit(make, uniform_subsets(k), *inputs[:2], device, job.seed).execute()
    explainer = EXPLAINERS["leave-one-out"]()
    parts: list[dict[str, Tensor]] = []
    places: list[Any] = []
    kept: list[Tensor] = []
    for rows in by_length(part, 16):
        batch = collate(part, rows).to(device)
        logits = model(batch).logits
        if job.row == "truth":
            chosen = top_k(known.opinion.to(device)[batch.ids].double(), batch.mask, k)
        else:
            chosen = top_k(explainer.explain(model, batch).weights, batch.mask, k)
        views = inputs[2].views(rows)
        own = 100.0 * torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1])
        alone = predict_selected(model, batch, chosen, "pad")
        readings = read(reader, views, chosen.float(), uniform_subsets(k), own)
        same = (alone.argmax(-1) == logits.argmax(-1)).double()
        values = {**readings.measures(logits, alone), "post-hoc-accuracy": same, PREDICTED: logits.argmax(-1)}
        parts.append({name: value.double().cpu() for name, value in values.items()})
        places.append(rows)
        kept.append(batch.ids[chosen].cpu())
    measures = class_balanced({name: torch.cat([scores[name] for scores in parts]) for name in parts[0]})
    return _record(measures, torch.cat(kept), known, {"explainer": job.row})


def _approximator(words: int) -> nn.Module:
    return as_keras(APPROXIMATORS["simple"](words, 2, L2X().dimension))


def _selected(choose: Any, model: Model, data: Data) -> Tensor:
    """The ids of all selected words."""
    ids = []
    for rows in by_length(data, 128):
        batch = collate(data, rows).to(model.device)
        ids.append(batch.ids[choose(batch)].cpu())
    return torch.cat(ids)


def _record(measures: dict[str, Tensor], kept: Tensor, known: Known, settings: dict[str, Any]) -> dict[str, Any]:
    values = {name: numbers.tolist() for name, numbers in measures.items()}
    rows = selection_rows(values, values.pop(PREDICTED), ("0", "1"), settings)
    numbers = {row.measure: round(row.value, 4) for row in rows if "class" not in row.settings}
    classes = {f"{row.measure}={row.settings['class']}": round(row.value, 4) for row in rows if "class" in row.settings}
    lows = {f"{row.measure} low": round(row.interval[0], 4) for row in rows if "gap" in row.measure and row.interval}
    seen = {} if known.seen is None else {"unseen-share": float((~known.seen[kept]).double().mean())}
    return {
        **numbers,
        **classes,
        **lows,
        **seen,
        "opinion-share": float(known.opinion[kept].double().mean()),
        "leaks": has_leakage(by_measure(rows)),
        "warnings": leakage_warnings(rows),
        "n": rows[0].n,
    }
