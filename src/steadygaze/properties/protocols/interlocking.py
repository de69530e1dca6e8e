"""Interlocking of a rationalizer: retrain it twice in a setting where the first sentence is a shortcut.

Yu et al. 2021 (arXiv:2110.13880), §3.2 and §5.3.

    first-sentence/biased    how often a model with the same settings selects the first sentence, if a token in front
                             of every text agrees with the label in 80 % of the training and test texts
    first-sentence/skewed    the same, if the predictor is first trained on the first sentence alone for some epochs
                             (`skewed_epochs`)

With interlocking, the generator selects what the predictor has learned, and the predictor learns nothing else.  The
protocol counts texts whose human rationale is outside the first sentence; without rationales, those for which the
audited model selects another sentence.  The answer depends on the whole interval of the share of these texts.  `yes`
also needs an accuracy above the share of the most frequent label.

Departs from the paper: the user's own texts, and one model each.  The protocol trains two models.
"""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from steadygaze.core.errors import HealthWarning, UserError
from steadygaze.core.types import Example, OnProgress, inputs_of, no_progress
from steadygaze.data.corpora import add_shortcut
from steadygaze.data.corpus import Corpus
from steadygaze.estimator import fit
from steadygaze.estimator.inputs import Split, read_inputs, read_split, read_validation
from steadygaze.estimator.model_folder import SavedModel
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.estimator.train_config import train_config
from steadygaze.models import inference
from steadygaze.models.inference import selects
from steadygaze.properties.audit_case import NO_LABELS, Finding, TrainingTask, missing_findings
from steadygaze.properties.measures.plausibility_measures import first_sentence
from steadygaze.properties.property import FEWEST, Threshold
from steadygaze.results.intervals import bootstrap_mean
from steadygaze.results.note import Note, NoteCode, note
from steadygaze.results.row import Answer, MeasureKey, mean_row
from steadygaze.techniques.technique import Technique
from steadygaze.training.progress import SilentWatcher, Watcher


class RetrainingWatcher(SilentWatcher):
    """Reports the number of finished training steps and the total."""

    def __init__(self, on_progress: OnProgress, task: str) -> None:
        self.on_progress, self.task, self.done = on_progress, task, 0

    def start(self, stages: int, epochs: int, steps: int) -> None:
        self.steps, self.total = steps, epochs * steps
        self.skip(0)

    def step(self, stage: str, epoch: int, terms: Mapping[str, Any]) -> None:
        self.done += 1
        self.on_progress(self.task, self.done, self.total)

    def skip(self, epochs: int) -> None:
        self.done += epochs * self.steps
        self.on_progress(self.task, self.done, self.total)

    def warn(self, message: str | Warning) -> None:
        """Ignored: the finding describes the model."""


FIRST = "first-sentence"
BIASED, SKEWED = INTERLOCKING_MEASURES = ("first-sentence/biased", "first-sentence/skewed")
AGREEMENT = 0.8
FIRST_SENTENCE_RULE = Threshold(0.3, 0.8, "", fewest=FEWEST)
"""Thresholds of the share of texts for which it should select another sentence."""
Elsewhere = tuple[Tensor, Literal["rationale", "selection"]]
"""The texts for which it should select another sentence (N,), and by what."""
INTERLOCKING_NEEDS_TRAIN = note(NoteCode.NO_TRAINING_TEXTS, models=2)
SELECTS = Note(NoteCode.SELECTS_WITHOUT_ATTENTION)


def interlocking(
    clf: TextClassifier,
    train: tuple[Any, Any],
    examples: Sequence[Example],
    skewed: int,
    reason: Tensor | None = None,
    on_progress: OnProgress = no_progress,
    validation: tuple[Any, Any] | None = None,
) -> Iterator[Finding]:
    """`train` and `validation`: texts and labels that `clf` was trained with; `examples`: the audited texts.

    Labels are those of `clf`.  `reason`: 1 if the rationale is in the first sentence, 0 if it is elsewhere, else NaN.
    (N,)  Without `validation`, a tenth of the training texts chooses the epoch.
    """
    if any(example.label is None for example in examples):
        yield from missing_findings(INTERLOCKING_MEASURES, NO_LABELS)
        return
    plain = {"train": _examples(read_split(*train)), "test": list(examples)}
    if validation is not None:
        plain["validation"] = _examples(read_validation(validation))
    elsewhere: Elsewhere = (reason == 0, "rationale") if reason is not None else _selected_elsewhere(clf, examples)
    biased = _with_shortcut(plain, clf.seed)
    if isinstance(biased, str):
        yield Finding(BIASED, absent=note(NoteCode.NO_SHORTCUT, message=biased))
    else:
        retrained = _retrain(clf, biased, RetrainingWatcher(on_progress, TrainingTask.BIASED))
        yield _finding(BIASED, {"agreement": AGREEMENT}, retrained, biased["test"], elsewhere)
    retrained = _retrain(clf, plain, RetrainingWatcher(on_progress, TrainingTask.SKEWED), skewed)
    yield _finding(SKEWED, {"epochs": skewed}, retrained, examples, elsewhere)


def _selected_elsewhere(clf: TextClassifier, examples: Sequence[Example]) -> Elsewhere:
    return read(clf.stored_, examples)[0] == 0, "selection"


def read(saved: SavedModel, examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
    """1 if the first sentence is selected, NaN if it is the only one; and 1 if the label is right.  (N,), (N,)"""
    model, data = saved.model, saved.data(*read_inputs(inputs_of(examples)))
    names = saved.description.classes
    assert selects(model)
    first, right = torch.full((2, len(data)), torch.nan, dtype=torch.float64)
    for rows, batch, forward in inference.forwards(model, data):
        first[rows] = first_sentence(forward.selected, model.sentences(batch) == 0, batch.mask).double().cpu()
        codes = forward.logits.argmax(-1).tolist()
        hits = [examples[row].label == names[code] for row, code in zip(rows, codes, strict=True)]
        right[rows] = torch.tensor(hits, dtype=torch.float64)
    return first, right


def interlocking_note(measure: str, first: Tensor, right: Tensor, guessed: float, elsewhere: Elsewhere) -> Note:
    """`first`: whether the first sentence is selected (N,); `guessed`: share of the most frequent label."""
    rows, by = elsewhere
    selections = first[rows & first.isfinite()]
    fields = {
        "training": MeasureKey.parse(measure).probe,
        "elsewhere": by,
        "texts": len(selections),
        "accuracy": _estimate(right),
        "guessed": guessed,
    }
    if len(selections) < FEWEST:
        return note(NoteCode.INTERLOCKING, **fields, answer="undecided", share=None, least=FEWEST)
    learned = bootstrap_mean(right.tolist())[0] > guessed
    decision = FIRST_SENTENCE_RULE.decide(mean_row(FIRST, selections.tolist(), proportion=True))
    answer: Answer = decision if learned or decision == "no" else "undecided"
    return note(
        NoteCode.INTERLOCKING, **fields, answer=answer, share=_estimate(selections), decision=decision, learned=learned
    )


def _finding(
    measure: str,
    settings: Mapping[str, str | int | float],
    retrained: SavedModel,
    examples: Sequence[Example],
    elsewhere: Elsewhere,
) -> Finding:
    first, right = read(retrained, examples)
    guessed = Counter(example.label for example in examples).most_common(1)[0][1] / len(examples)
    remark = interlocking_note(measure, first, right, guessed, elsewhere)
    return Finding(measure, first, "rationale", settings, (remark,))


def _examples(split: Split) -> list[Example]:
    rows = zip(split.texts, split.labels, split.sentences or [None] * len(split.texts), strict=True)
    return [Example(text, label, sentences=spans) for text, label, spans in rows]


def _with_shortcut(splits: dict[str, list[Example]], seed: int) -> dict[str, list[Example]] | str:
    """All splits with a token in front, or the reason why this is impossible."""
    try:
        return add_shortcut(Corpus("this corpus", splits), AGREEMENT, seed).splits
    except UserError as why:
        return str(why).rstrip(".")


def _retrain(clf: TextClassifier, splits: dict[str, list[Example]], watcher: Watcher, skewed: int = 0) -> SavedModel:
    """Train a model with the settings of `clf` on these splits, after `skewed` epochs on first sentences."""
    params = clf.get_params(deep=False)
    if skewed and isinstance(clf.technique, Technique):
        params["technique"] = replace(clf.technique, skewed=skewed)  # type: ignore[call-arg]
    elif skewed:
        params["settings"] = {**(clf.settings or {}), "skewed": skewed}
    train = read_split(*_columns(splits["train"]))
    validation = read_validation(_columns(splits["validation"])) if "validation" in splits else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HealthWarning)  # expected here
        saved = fit.fit(train_config(params), train, validation, watcher)
    saved.model.to(clf.stored_.model.device)
    return saved


def _columns(examples: Sequence[Example]) -> tuple[Any, Any]:
    return inputs_of(examples), np.array([example.label for example in examples])


def _estimate(values: Tensor) -> tuple[float, float, float]:
    """The mean, and its interval."""
    return float(values.mean()), *bootstrap_mean(values.tolist())
