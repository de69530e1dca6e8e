"""Would this rationaliser lock?  The model twice more, trained where the first sentence is a trap.

Yu et al. 2021 (arXiv:2110.13880), §3.2 and §5.3.

    first-sentence/biased    how often the first sentence is selected by a model of the same shape, technique and
                             settings, trained and read where a token in front of every text agrees with its label in
                             80 % of them (data/corpora.py): enough to lure, not enough to be right
    first-sentence/skewed    the same, trained on the texts as they are, where the predictor has learnt from the first
                             sentence alone for some epochs (Plan.skewed) before the generator begins

A generator that got stuck selects what the predictor happens to know, and the predictor learns nothing else: they are
interlocked.  It then takes the first sentence of texts whose known reason is elsewhere, too; where no reason is known,
of texts in which the model as it is takes another.  The share of these decides, by its whole interval, as in a verdict.
That a model would not lock is not said of one that may have learnt nothing, being right no oftener than the commonest
label; one that locked on sentences which say nothing is such a model.

Departs from the paper: asked of the user's own texts, of one model each.  Costs two trainings.

Epochs: a training as whoever watches an audit is told of it.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from steadygaze.audit.audit_case import silent
from steadygaze.audit.finding import NO_LABELS, Finding, missing_findings
from steadygaze.audit.measures.plausibility_measures import first_sentence
from steadygaze.audit.verdict_rules import FEWEST, Bound
from steadygaze.core.errors import UserError
from steadygaze.core.types import Example
from steadygaze.data.corpora import add_shortcut
from steadygaze.data.corpus import Corpus
from steadygaze.estimator import fit
from steadygaze.estimator.inputs import read_split
from steadygaze.estimator.model_folder import SavedModel
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.estimator.train_config import train_config
from steadygaze.models import inference
from steadygaze.models.model_protocol import Model
from steadygaze.models.rationalizer import Rationalizer
from steadygaze.results.row import bootstrap, mean_row
from steadygaze.results.verdict import Answer
from steadygaze.techniques.technique import Technique
from steadygaze.training.progress import SilentWatcher, Watcher


class EpochWatcher(SilentWatcher):
    """Says how many epochs are done, and of how many."""

    def __init__(self, watch: Callable[[str, int, int], None], what: str) -> None:
        self.watch, self.what, self.done = watch, what, 0

    def start(self, stages: int, epochs: int, steps: int) -> None:
        self.total = epochs
        self.skip(0)

    def epoch(self, record: Mapping[str, Any]) -> None:
        self.skip(1)

    def skip(self, epochs: int) -> None:
        self.done += epochs
        self.watch(self.what, self.done, self.total)

    def warn(self, message: str) -> None:
        """What such a model has learnt is in the answer."""


FIRST = "first-sentence"
BIASED, SKEWED = LOCKS = (f"{FIRST}/biased", f"{FIRST}/skewed")
HOW = {
    BIASED: "trained with a token in front that often tells the label",
    SKEWED: "trained with a predictor that began with first sentences alone",
}
AGREEMENT = 0.8
FREE = Bound(0.3, 0.8, "it takes the first sentence of {value}")
"""Of texts in which it should take another."""
ANSWERS: dict[Answer, str] = {
    "yes": "it would not lock",
    "partly": "it cannot be told whether it would lock",
    "no": "it would lock",
}
KNOWN, USUAL = "texts whose known reason is elsewhere", "texts in which, as it is, it takes another"
Away = tuple[Tensor, str]
"""Of which texts it should take another sentence (N,), and which these are."""
UNLOCKED = "it takes two trainings: train= (--train) gives the texts and labels for them"
SELECTS = "the model selects what it reads, and has no attention to train elsewhere"


def interlocking_not_applicable(model: Model) -> str:
    """Why it cannot be asked; '': it can."""
    if not isinstance(model, Rationalizer):
        return "the model does not select what it reads: there is nothing to lock"
    return "" if model.selection_config.granularity == "sentence" else "the model selects words, not sentences"


def interlocking(
    clf: TextClassifier,
    train: tuple[Any, Any],
    examples: Sequence[Example],
    skewed: int,
    reason: Tensor | None = None,
    watch: Callable[[str, int, int], None] = silent,
) -> Iterator[Finding]:
    """`train`: texts and labels that `clf` was trained with; `examples`: what is audited, labelled as `clf` does.

    `reason`: 1 where the known reason is in the first sentence, 0 where it is elsewhere, else NaN.  (N,)
    """
    if any(example.label is None for example in examples):
        yield from missing_findings(LOCKS, NO_LABELS)
        return
    given = read_split(*train)
    known = [Example(text, label) for text, label in zip(given.texts, given.labels, strict=True)]
    away = (read(clf.stored_, examples)[0] == 0, USUAL) if reason is None else (reason == 0, KNOWN)
    lured = _lured(known, examples, clf.seed)
    if isinstance(lured, str):
        yield Finding(BIASED, absent=lured)
    else:
        again = _again(clf, lured["train"], EpochWatcher(watch, "biased training, epochs"))
        yield _tried(BIASED, {"agreement": AGREEMENT}, again, lured["test"], away)
    again = _again(clf, known, EpochWatcher(watch, "skewed training, epochs"), skewed)
    yield _tried(SKEWED, {"epochs": skewed}, again, examples, away)


def read(stored: SavedModel, examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
    """Whether the first sentence is selected, NaN of a text of one; and whether the label is right.  (N,), (N,)"""
    model, data = stored.model, stored.data([example.text for example in examples], None)
    names = stored.description.classes
    assert isinstance(model, Rationalizer)
    first, right = torch.full((2, len(data)), torch.nan, dtype=torch.float64)
    for rows, batch, said in inference.forwards(model, data):
        first[rows] = first_sentence(said.selected, model.sentences(batch) == 0, batch.mask).double().cpu()
        codes = said.logits.argmax(-1).tolist()
        hits = [examples[row].label == names[code] for row, code in zip(rows, codes, strict=True)]
        right[rows] = torch.tensor(hits, dtype=torch.float64)
    return first, right


def interlocking_sentence(first: Tensor, right: Tensor, guessed: float, away: Away) -> tuple[Answer, str]:
    """Is it safe?  `first`: whether the first sentence is taken (N,); `guessed`: share of the commonest label."""
    which, texts = away
    known = first[which & first.isfinite()]
    is_right = f"it is right in {_spoken(right)} of all texts, the commonest label in {guessed:.0%}"
    if len(known) < FEWEST:
        return "partly", f"{ANSWERS['partly']}: {FEWEST} {texts} are needed, and there are {len(known)}; {is_right}"
    learnt = bootstrap(right.tolist())[0] > guessed
    judged = FREE.decide(mean_row(FIRST, known.tolist()))
    answer: Answer = judged if learnt or judged == "no" else "partly"
    takes = FREE.sentence.format(value=f"{_spoken(known)} of the {len(known):,} {texts}")
    doubt = f", {'but' if judged == 'yes' else 'and'} may have learnt nothing: "
    return answer, f"{ANSWERS[answer]}: {takes}{'; ' if learnt else doubt}{is_right}"


def _tried(
    measure: str, how: Mapping[str, str | int | float], again: SavedModel, examples: Sequence[Example], away: Away
) -> Finding:
    """What a model that was trained again does."""
    first, right = read(again, examples)
    guessed = Counter(example.label for example in examples).most_common(1)[0][1] / len(examples)
    answer, said = interlocking_sentence(first, right, guessed, away)
    return Finding(measure, first, "rationale", how, f"{HOW[measure]}, {said}", answer=answer)


def _lured(train: list[Example], test: Sequence[Example], seed: int) -> dict[str, list[Example]] | str:
    """Both with a token in front; or why there is none."""
    try:
        return add_shortcut(Corpus("this corpus", {"train": train, "test": list(test)}), AGREEMENT, seed).splits
    except UserError as why:
        return str(why).rstrip(".")


def _again(clf: TextClassifier, examples: Sequence[Example], watcher: Watcher, skewed: int = 0) -> SavedModel:
    """Trained as `clf` was, on these texts, or after so many skewed epochs."""
    how = clf.get_params(deep=False)
    if skewed and isinstance(clf.technique, Technique):
        how["technique"] = replace(clf.technique, skewed=skewed)  # type: ignore[call-arg]
    elif skewed:
        how["settings"] = {**(clf.settings or {}), "skewed": skewed}
    split = read_split([example.text for example in examples], np.array([example.label for example in examples]))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(collapsed attention|an interlocked selection)")  # which is what is asked
        stored = fit.fit(train_config(how), split, None, watcher, fit.CheckpointConfig())
    stored.model.to(clf.stored_.model.device)
    return stored


def _spoken(values: Tensor) -> str:
    low, high = bootstrap(values.tolist())
    return f"{values.mean():.0%} ({low:.0%} to {high:.0%})"
