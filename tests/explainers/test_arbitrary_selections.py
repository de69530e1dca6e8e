"""Arbitrary selections: a predictor with a default class, which it predicts from anything without other evidence."""

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

import steadygaze as sg
from commands import run
from explainers.room_reviews import room_reviews
from steadygaze.core.maths import distributions
from steadygaze.core.ragged import segment_sum
from steadygaze.core.settings import settings
from steadygaze.core.types import Batch
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.explainers.explainer import SelectionPredictions
from steadygaze.models.rationalizer import GeneratorOutput, Rationalizer
from steadygaze.results.leakage_warnings import ArbitraryClass, arbitrary_classes, leakage_warnings, selection_warnings
from steadygaze.results.row import Row, mean_row
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.rnp import Rnp

SETTINGS = {"dimension": 16, "patience": 8, "learning_rate": 0.02}
EVIDENCE = ("dirty", "tiny", "mold", "cold", "worn")
"""One word of each sentence that makes a review bad."""
Texts = tuple[list[str], list[str]]
Fit = tuple[TextClassifier, list[str], Texts]
"""A model, what training warned of, and test texts with labels."""


class Right(Rationalizer):
    """Selects the sentence about the room."""

    room: ClassVar[int]
    bad: ClassVar[tuple[int, ...]]

    def wanted(self, about_room: Tensor, is_bad: Tensor, real: Tensor) -> Tensor:
        return about_room

    def generate(self, batch: Batch, embedded: Tensor | None = None) -> GeneratorOutput:
        read = super().generate(batch, embedded)
        assert read.numbers is not None
        about_room = segment_sum((batch.ids == self.room).float(), read.numbers, read.real.shape[1]).clamp(max=1)
        is_bad = torch.isin(batch.ids, torch.tensor(self.bad)).any(-1, keepdim=True)
        scores = read.scores * 0 + 20 * self.wanted(about_room, is_bad, read.real)
        chances = distributions.softmax(scores, read.real)
        return GeneratorOutput(read.hidden, read.numbers, read.real, scores, chances)


class Careless(Right):
    """Selects the sentence about the room in bad reviews, and another one in good reviews."""

    def wanted(self, about_room: Tensor, is_bad: Tensor, real: Tensor) -> Tensor:
        position = torch.arange(real.shape[1]).expand_as(real)
        last = (position * (real & (about_room == 0))).argmax(-1, keepdim=True)
        return torch.where(is_bad, about_room, (position == last).float())


@settings
class RightRnp(Rnp):
    kind: ClassVar[type[Rationalizer]] = Right


@settings
class CarelessRnp(Rnp):
    kind: ClassVar[type[Rationalizer]] = Careless


def fitted(technique: Rnp, room_reviews: Callable[[int, int], Texts]) -> Fit:
    texts, labels = room_reviews(400, 0)
    vocabulary = list(build_word_tokenizer(texts).vocabulary)
    Right.room, Right.bad = vocabulary.index("room"), tuple(map(vocabulary.index, EVIDENCE))
    clf = TextClassifier("average", technique, epochs=8, seed=0, settings=SETTINGS, device="cpu")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.fit(texts, labels, validation=room_reviews(200, 1))
    return clf, [str(warning.message) for warning in caught], room_reviews(100, 2)


@pytest.fixture(scope="module")
def reviews() -> Iterator[Callable[[int, int], Texts]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TECHNIQUES, "RightRnp", RightRnp)
        patch.setitem(TECHNIQUES, "CarelessRnp", CarelessRnp)

        def without_first(count: int, seed: int) -> tuple[list[str], list[str]]:
            """All sentences but the one about the room are then the same in good and bad reviews."""
            texts, labels, _ = room_reviews(count, seed)
            return [text.split(". ", 1)[1] for text in texts], labels

        yield without_first


@pytest.fixture(scope="module")
def careless(reviews: Any) -> Fit:
    return fitted(CarelessRnp(exploration=0.0), reviews)


@pytest.mark.slow
def test_training_names_the_class_whose_selections_are_arbitrary(careless: Fit) -> None:
    clf, output, test = careless
    assert clf.score(*test) == 1.0
    (sentence,) = (message for message in output if message.startswith("For "))
    assert sentence.startswith("For good (")
    assert "the selection is arbitrary: the model's own predictor predicts this class from nearly any" in sentence
    (found,) = clf.stored_.description.arbitrary_classes
    assert (found.label, found.is_frequent) == ("good", True)
    assert found.arbitrary > 0.5 * found.n


@pytest.mark.slow
def test_a_model_that_selects_the_evidence_is_not_warned_about(reviews: Any) -> None:
    clf, output, test = fitted(RightRnp(exploration=0.0), reviews)
    assert clf.score(*test) == 1.0
    assert output == []
    assert clf.stored_.description.arbitrary_classes == ()


@pytest.mark.slow
def test_the_audit_reports_the_raw_gap_and_the_share_of_each_class(careless: Fit) -> None:
    clf, _, test = careless
    report = sg.audit(clf, *test, sample=10)
    raw = report.find("leakage-gap/raw").value
    assert report.find("leakage-gap").value < raw - 0.1
    for verdict in report.verdicts:
        rests = any(signature.startswith("leakage-gap|") for signature in verdict.rows)
        counted = f"an independent reader ({raw:.3f} with the texts that count as 0 because nearly any selection gives"
        assert (counted in verdict.why) == rests
    shares = {row.settings["class"]: row.value for row in report.rows if row.measure == "arbitrary-selection/by-class"}
    assert shares["bad"] == 0 < 0.5 < shares["good"]
    assert any(note.sentence.startswith("For good (") for note in report.notes)


@pytest.mark.slow
def test_explanations_say_how_often_the_selection_of_their_class_is_arbitrary(
    careless: Fit, capsys: Any, tmp_path: Path
) -> None:
    clf, output, (texts, labels) = careless
    (found,) = clf.stored_.description.arbitrary_classes
    clf.save(tmp_path / "model")
    good, bad = texts[labels.index("good")], texts[labels.index("bad")]
    for model in (clf, sg.load(tmp_path / "model")):
        explained = model.explain([good, bad])
        assert [item.arbitrary_selections for item in explained] == [(found.arbitrary, found.n), None]
    ended = run(capsys, "explain", tmp_path / "model", good, "--json", "--device", "cpu")
    assert json.loads(ended.out)["arbitrary_selections"] == [found.arbitrary, found.n]
    assert all(" ".join(sentence.split()) in " ".join(ended.err.split()) for sentence in output)


def readings(agreement: list[float], exempt: bool) -> SelectionPredictions:
    """The network predicts class 0 of every text; the reader only of the second and third."""
    right, wrong = torch.tensor([0.9, 0.1]), torch.tensor([0.1, 0.9])
    reader = torch.stack([wrong, right, right, wrong])
    return SelectionPredictions(
        reader,
        reader.unsqueeze(1),
        reader,
        right.expand(4, 2),
        agreement=torch.tensor(agreement, dtype=torch.float64),
        exempt=exempt,
    )


@pytest.mark.parametrize(("exempt", "gap"), [(True, [0.0, 0.0, 0.0, 1.0]), (False, [1.0, 0.0, 0.0, 1.0])])
def test_a_text_is_arbitrary_if_any_selection_gives_the_class_and_the_reader_misses_it(
    exempt: bool, gap: list[float]
) -> None:
    measures = readings([1.0, 1.0, 0.5, 0.75], exempt).measures(torch.tensor([[1.0, 0.0]]).expand(4, 2))
    assert measures["arbitrary-selection"].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert measures["leakage-gap"].tolist() == gap
    assert measures.get("leakage-gap/raw", measures["leakage-gap"]).tolist() == [1.0, 0.0, 0.0, 1.0]


def share(arbitrary: int, n: int, label: str) -> Row:
    values = [1.0] * arbitrary + [0.0] * (n - arbitrary)
    return mean_row("arbitrary-selection/by-class", values, {"class": label}, proportion=True)


def test_a_class_with_few_arbitrary_texts_is_not_named() -> None:
    """The lower ends of the intervals of 8 and 12 of 100 texts lie on both sides of 0.05."""
    (sentence,) = map(str, selection_warnings([share(8, 100, "bad"), share(12, 100, "good"), share(20, 29, "few")]))
    assert sentence.startswith("For good (12 of 100 texts) the selection is arbitrary: ")


def scores(**values: float) -> list[Row]:
    names = {name.replace("__", "/").replace("_", "-"): value for name, value in values.items()}
    return [Row(name, value, 200, (value - 0.03, value + 0.03), {"explainer": "vibi"}) for name, value in names.items()]


def test_a_reader_that_prefers_random_words_is_reported() -> None:
    rows = scores(independent_reader_accuracy=0.66, independent_reader_accuracy__random_words=0.85, leakage_gap=0.0)
    (sentence,) = map(str, selection_warnings(rows))
    assert sentence == (
        "The selection is not better than a random one: an independent reader is right in 66 % of the texts from the "
        "selected words, and in 85 % from random words."
    )
    assert (
        selection_warnings(scores(independent_reader_accuracy=0.9, independent_reader_accuracy__random_words=0.85))
        == []
    )
    all_words = scores(independent_reader_accuracy=0.98, independent_reader_accuracy__random_words=0.99)
    assert selection_warnings(all_words) == [], "every word carries the label"


def test_unselected_words_that_predict_better_are_reported() -> None:
    rows = scores(fidelity=1.0, independent_reader_accuracy=0.93, post_hoc_accuracy=0.89)
    (sentence,) = map(str, leakage_warnings([*rows, *scores(post_hoc_accuracy__unselected=0.99)]))
    assert sentence.startswith("The unselected words predict better than the selected ones: the black box predicts")
    assert "in 99 % of the texts, and from the selected words in 89 %" in sentence
    assert leakage_warnings([*rows, *scores(post_hoc_accuracy__unselected=0.94)]) == [], "the intervals overlap"


def test_the_classes_are_typed_facts() -> None:

    assert arbitrary_classes([share(0, 40, "bad"), share(20, 40, "good")]) == (ArbitraryClass("good", 20, 40, True),)
