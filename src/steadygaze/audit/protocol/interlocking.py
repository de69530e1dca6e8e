"""Would this rationaliser lock?  The model twice more, trained where the first sentence is a trap.

Yu et al. 2021 (arXiv:2110.13880), §3.2 and §5.3.

    first-sentence/biased    how often the first sentence is selected by a model of the same shape, technique and
                             settings, trained and read where a token in front of every text agrees with its label in
                             80 % of them (corpus/bias.py): enough to lure, not enough to be right
    first-sentence/skewed    the same, trained on the texts as they are, where the predictor has learnt from the first
                             sentence alone for some epochs (Plan.skewed) before the generator begins

A generator that got stuck selects what the predictor happens to know, and the predictor learns nothing else: they are
interlocked.  High beside `first-sentence` and beside `first-sentence/evidence`, how often the true reason stands there:
it would lock.  Where the true reason is in the first sentence anyway, selecting it says nothing.

Departs from the paper: asked of the user's own texts, of one model each.  Costs two trainings.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from steadygaze import infer
from steadygaze.audit.finding import Finding
from steadygaze.audit.measure.selection import first_sentence
from steadygaze.audit.protocol.absent import NO_LABELS
from steadygaze.corpus.bias import biased
from steadygaze.corpus.corpus import Corpus
from steadygaze.errors import UserError
from steadygaze.estimator import TextClassifier
from steadygaze.inputs import read_split
from steadygaze.objective.technique import Technique
from steadygaze.rationaliser import Rationaliser
from steadygaze.reader import Reader
from steadygaze.types import Example

FIRST = "first-sentence"
BIASED, SKEWED = LOCKS = ("first-sentence/biased", "first-sentence/skewed")
AGREEMENT = 0.8
LOCKED, MORE = 0.8, 0.3
"""A model locks that takes the first sentence of so many texts, and of so many more than it should."""
UNLOCKED = "it takes two trainings: in Python, train= gives the texts and labels for them"
SELECTS = "the model selects what it reads, and has no attention to train elsewhere"
UNKNOWN = "how often the true reason is in the first sentence is not known here, and should be"
Split = tuple[list[str], list[Any]]


def unlockable(model: Reader) -> str:
    """Why it cannot be asked; '': it can."""
    if not isinstance(model, Rationaliser):
        return "the model does not select what it reads: there is nothing to lock"
    return "" if model.way.granularity == "sentence" else "the model selects words, not sentences"


def interlocking(
    clf: TextClassifier, train: tuple[Any, Any], examples: Sequence[Example], skewed: int
) -> Iterator[Finding]:
    """`train`: texts and labels that `clf` was trained with; `examples`: what is audited, labelled as `clf` does."""
    given = read_split(*train)
    known = [Example(text, label) for text, label in zip(given.texts, given.labels, strict=True)]
    lured = _lured(known, examples, clf.seed)
    if isinstance(lured, str):
        yield Finding(BIASED, absent=lured)
    else:
        values = chosen_first(_again(clf, lured["train"]), lured["test"])
        yield Finding(BIASED, values, "rationale", {"agreement": AGREEMENT})
    yield Finding(SKEWED, chosen_first(_again(clf, known, skewed), examples), "rationale", {"epochs": skewed})


def chosen_first(clf: TextClassifier, examples: Sequence[Example]) -> Tensor:
    """Whether the first sentence is selected; NaN of a text of one sentence.  (N,)"""
    model, data = clf.stored_.model, clf.stored_.data([example.text for example in examples], None)
    assert isinstance(model, Rationaliser)
    found = torch.full((len(data),), torch.nan, dtype=torch.float64)
    for rows, batch, said in infer.forwards(model, data):
        first = model.sentences(batch) == 0
        found[torch.from_numpy(rows)] = first_sentence(said.selected, first, batch.mask).cpu()
    return found


def told(found: Sequence[Finding]) -> list[Finding]:
    """The same, each with a sentence: would it lock?  `found` has the model as it is too, and the evidence."""
    means = {one.measure: _mean(one) for one in found}
    return [replace(one, note=_sentence(one.measure, means)) if one.measure in LOCKS else one for one in found]


def _lured(train: list[Example], test: Sequence[Example], seed: int) -> dict[str, list[Example]] | str:
    """Both with a token in front; or why there is none."""
    if any(example.label is None for example in test):
        return NO_LABELS
    try:
        return biased(Corpus("this corpus", {"train": train, "test": list(test)}), AGREEMENT, seed).splits
    except UserError as why:
        return str(why).rstrip(".")


def _again(clf: TextClassifier, examples: Sequence[Example], skewed: int = 0) -> TextClassifier:
    """Trained as `clf` was, on these texts, or after so many skewed epochs."""
    other: TextClassifier = clone(clf).set_params(verbose=False)
    if skewed and isinstance(clf.technique, Technique):
        other.set_params(technique=replace(clf.technique, skewed=skewed))  # type: ignore[call-arg]
    elif skewed:
        other.set_params(settings={**(clf.settings or {}), "skewed": skewed})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "collapsed attention")  # that it may lock is what is asked
        return other.fit([example.text for example in examples], np.array([example.label for example in examples]))


def _mean(one: Finding) -> float:
    return float("nan") if one.values is None else float(one.values.nanmean())


def _sentence(measure: str, means: Mapping[str, float]) -> str:
    value, usual, known = (means.get(name, float("nan")) for name in (measure, FIRST, f"{FIRST}/evidence"))
    if value != value:
        return ""
    right = usual if known != known else known
    answer = "it would lock" if value >= LOCKED and value - right >= MORE else "it would not lock"
    answer = "it cannot be told whether it would lock" if right > 1 - MORE else answer
    trained = "with a token in front that often tells the label" if measure == BIASED else "skewed"
    takes = f"it takes the first sentence of {value:.0%} of the texts, as it is of {usual:.0%}"
    reason = UNKNOWN if known != known else f"the known reason is in it in {known:.0%}"
    return f"{answer}: trained {trained}, {takes}; {reason}"
