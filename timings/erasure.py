"""Time of comprehensiveness and sufficiency in the audit, beside one text at a time and beside forward passes alone.

All variants run in turn on the same model and the same SST-2 texts, with five sizes of each measure.  The weights of
the models are random, except MiniLM's encoder: time does not depend on them.

    one at a time   for each text and size: erase, then a forward pass of this text alone
    ours            erase_words on batches of 256 texts, as in the audit, and the measures
    bare passes     the forward passes of `ours` alone, with prepared batches
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from steadygaze.core.types import Batch
from steadygaze.data.batches import Data, by_length, collate
from steadygaze.data.subword_tokenizer import load_subword_tokenizer
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.models.classifier import Architecture, Classifier, word_encoder
from steadygaze.models.encoders.transformer import from_folder, locate
from steadygaze.models.inference import Model, inference
from steadygaze.properties.measures.faithfulness_measures import comprehensiveness, sufficiency
from steadygaze.properties.probes.erasure import SHARES, erase_words
from steadygaze.properties.probes.text_perturbations import observe
from timings.harness import Result, race
from timings.inputs import sentences

MIN_SPEEDUP = {"cpu": 2.5, "cuda": 10.0}
MAX_OVERHEAD = 1.5
TOLERANCE = 1e-5
BATCH_SIZE = 256
SHAPE = Architecture(hidden=128)


@dataclass(frozen=True)
class Case:
    batch: Batch
    clean: Tensor  # (B,C)
    weights: Tensor  # (B,T)


def build_bilstm(read: list[str]) -> tuple[Model, Data]:
    tokens = build_word_tokenizer(read, min_df=1, max_length=512)
    encoder = word_encoder("bilstm", SHAPE, tokens.size, pair=False)
    return Classifier(encoder, SHAPE, classes=2, pair=False), Data(tokens.encode(read))


def build_minilm(read: list[str]) -> tuple[Model, Data]:
    folder = locate("minilm")
    tokens = load_subword_tokenizer(folder, max_length=512)
    return Classifier(from_folder(folder), SHAPE, classes=2, pair=False), Data(tokens.encode(read))


MODELS = {"bilstm": build_bilstm, "minilm": build_minilm}


def cases(model: Model, data: Data) -> list[Case]:
    """Batches, predictions and saliencies: the inputs of erasure in an audit."""
    batches = [collate(data, rows).to(model.device) for rows in by_length(data, BATCH_SIZE)]
    return [Case(batch, seen.probs, seen.weights) for batch in batches for seen in [observe(model, batch)]]


def erase_in_batches(model: Model, cases: list[Case]) -> Tensor:
    """Comprehensiveness and sufficiency of all texts.  (2,N)"""
    erasures = [(case.clean, *erase_words(model, case.batch, case.clean, case.weights)) for case in cases]
    return torch.cat([torch.stack([comprehensiveness(c, w), sufficiency(c, a)]) for c, w, a in erasures], 1)


def erase_one_by_one(model: Model, cases: list[Case]) -> Tensor:
    """The same with one forward pass for each text, size and measure.  (2,N)"""
    measures = []
    for case in cases:
        for row in range(len(case.batch)):
            without, alone = (torch.stack(probs) for probs in zip(*_erase_text(model, case, row), strict=True))
            clean = case.clean[row : row + 1]
            measures.append(torch.stack([comprehensiveness(clean, without[None]), sufficiency(clean, alone[None])]))
    return torch.cat(measures, 1)


def _erase_text(model: Model, case: Case, row: int) -> list[tuple[Tensor, Tensor]]:
    positions = case.batch.mask[row].nonzero().flatten()
    order = positions[case.weights[row, positions].argsort(descending=True, stable=True)]
    sizes = [math.ceil(share * len(order) - 1e-9) for share in SHARES]
    without = partial(_predict_without, model, case.batch, row)
    return [(without(order[:k]), without(order[k:])) for k in sizes]


def _predict_without(model: Model, batch: Batch, row: int, positions: Tensor) -> Tensor:
    present = batch.present[row : row + 1].clone()
    present[0, positions] = False
    kept = present[0] if present.any() else torch.arange(present.shape[1], device=present.device) < 1  # padding alone
    ids, words = batch.ids[row : row + 1, kept], batch.mask[row : row + 1, kept]
    present = present[:, kept]
    return observe(model, Batch(ids, present, words & present, batch.index[row : row + 1])).probs[0]


def recorded_batches(model: Model, cases: list[Case]) -> list[Batch]:
    """The batches of all forward passes of `erase_in_batches`."""
    batches: list[Batch] = []
    handle = model.register_forward_pre_hook(lambda _, inputs: batches.append(inputs[0]))
    erase_in_batches(model, cases)
    handle.remove()
    return batches


def run_forward_passes(model: Model, passes: list[Batch]) -> None:
    with inference(model):
        for batch in passes:
            model(batch)


def run(*, texts: int = 500, rounds: int = 3, device: str = "cpu", models: str = "bilstm,minilm") -> list[Result]:
    """The first texts of validation and test."""
    torch.manual_seed(0)
    read = sentences("validation", "test")[0][:texts]
    return [result for name in models.split(",") for result in compare(name, *MODELS[name](read), rounds, device)]


def compare(name: str, model: Model, data: Data, rounds: int, device: str) -> list[Result]:
    """All ratios of one model."""
    audit_cases = cases(model.to(device), data)
    passes = recorded_batches(model, audit_cases)
    real, padded = (sum(column) for column in zip(*map(_tokens, passes), strict=True))
    variants: dict[str, Callable[[], object]] = {
        "one at a time": partial(erase_one_by_one, model, audit_cases),
        "ours": partial(erase_in_batches, model, audit_cases),
        "bare passes": partial(run_forward_passes, model, passes),
    }
    difference = float((erase_one_by_one(model, audit_cases) - erase_in_batches(model, audit_cases)).abs().max())
    times = race(variants, rounds)
    results = [
        *(times.time(variant, "s") for variant in variants),
        times.ratio("one at a time", "ours", at_least=MIN_SPEEDUP[torch.device(device).type]),
        times.ratio("ours", "bare passes", at_most=MAX_OVERHEAD),
        Result("largest difference of the two ways", difference, at_most=TOLERANCE),
        Result("share of padding", 1 - real / padded),
    ]
    return [replace(result, name=f"{name}: {result.name}") for result in results]


def _tokens(batch: Batch) -> tuple[int, int]:
    return int(batch.present.sum()), batch.ids.numel()
