"""The independent reader of a rationalizer: it does not follow a label that only the choice of the words carries."""

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

import steadygaze as sg
from commands import run
from steadygaze.core.maths import distributions
from steadygaze.core.ragged import segment_sum
from steadygaze.core.random_key import RandomKey
from steadygaze.core.rounding import percent
from steadygaze.core.settings import settings
from steadygaze.core.types import Batch
from steadygaze.data.batches import collate
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.estimator import fit as fitting
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models.rationalizer import GeneratorOutput, Rationalizer
from steadygaze.results.note import NoteCode
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.rnp import Rnp
from studies.xor_rationalizer.reviews import one_sided_comments, xor_reviews

LEAKAGE, READER, GAP = "Label leakage", "independent-reader-accuracy", "leakage-gap"
SETTINGS = {"dimension": 16, "patience": 8, "learning_rate": 0.02}
Texts = tuple[list[str], list[str]]
Fit = tuple[TextClassifier, list[str]]
"""A model, and what training warned of."""


class Leaking(Rationalizer):
    """Its generator knows the label, an exclusive or, and selects the filler that stands for it."""

    words: ClassVar[tuple[int, int]]
    """The word that stands for each label."""
    causes: ClassVar[tuple[int, ...]]
    """The words whose exclusive or is the label."""

    def generate(self, batch: Batch, embedded: Tensor | None = None) -> GeneratorOutput:
        looked = super().generate(batch, embedded)
        assert looked.numbers is not None
        label = torch.stack([(batch.ids == word).any(-1) for word in self.causes]).long().sum(0) % 2
        word = torch.tensor(self.words)[label].unsqueeze(-1)
        wanted = segment_sum((batch.ids == word).float(), looked.numbers, looked.real.shape[1])
        scores = looked.scores * 0 + 20 * wanted
        return GeneratorOutput(
            looked.hidden, looked.numbers, looked.real, scores, distributions.softmax(scores, looked.real)
        )


class Honest(Leaking):
    """Selects the sentence that leaks the label."""


@settings
class LeakingRnp(Rnp):
    """Training moves the predictor alone."""

    kind: ClassVar[type[Rationalizer]] = Leaking


@settings
class HonestRnp(Rnp):
    """Training moves the predictor alone."""

    kind: ClassVar[type[Rationalizer]] = Honest


@pytest.fixture(scope="module")
def reviews() -> Iterator[Callable[[int, int], Texts]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TECHNIQUES, "LeakingRnp", LeakingRnp)
        yield xor_reviews


def fitted(technique: Rnp, kind: type[Leaking], train: Texts, words: tuple[str, ...], seed: int = 0, **how: Any) -> Fit:
    """`words`: what stands for each label, and what makes the label."""
    vocabulary = list(build_word_tokenizer(train[0]).vocabulary)
    places = tuple(vocabulary.index(word) for word in words)
    kind.words, kind.causes = places[:2], places[2:]
    clf = TextClassifier("average", technique, epochs=8, seed=seed, settings=SETTINGS, device="cpu")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.fit(*train, **how)
    return clf, [str(warning.message) for warning in caught]


def fitted_plain(technique: str, train: Texts) -> Fit:
    """A rationalizer as shipped."""
    clf = TextClassifier("average", technique, epochs=12, seed=1, settings=SETTINGS, device="cpu")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.fit(*train)
    return clf, [str(warning.message) for warning in caught]


def leaking(train: Texts, **how: Any) -> Fit:
    """The label is "good" where just one of both is: a warm room, a quiet street."""
    return fitted(LeakingRnp(exploration=0.0), Leaking, train, ("nights", "sister", "warm", "quiet"), **how)


@pytest.fixture(scope="module")
def generator_states() -> list[Tensor]:
    """Of the caller's generator, before and after the fit that most tests share."""
    return []


@pytest.fixture(scope="module")
def leaky(reviews: Callable[[int, int], Texts], generator_states: list[Tensor]) -> Fit:
    torch.manual_seed(3)
    generator_states.append(torch.get_rng_state())
    fit = leaking(reviews(300, 0))
    generator_states.append(torch.get_rng_state())
    return fit


@pytest.mark.slow
def test_a_label_coded_in_fillers_is_reported_in_training_and_audit(
    leaky: Fit, reviews: Callable[[int, int], Texts]
) -> None:
    """All accuracy above one half is leakage, and the audit does not call such a selection faithful."""
    (clf, output), test = leaky, reviews(100, 1)
    assert clf.score(*test) == 1.0
    assert any(
        message.startswith(f"{LEAKAGE}: from the selected words the model's own predictor recovers the label")
        for message in output
    )
    report = sg.audit(clf, *test, sample=10)
    assert report.find(READER).value < 0.75
    assert report.find(GAP).value > 0.25
    assert any(note.code == NoteCode.LABEL_LEAKAGE for note in report.notes)
    assert next(verdict for verdict in report.verdicts if verdict.key == "faithfulness").answer == "no"


@pytest.mark.slow
def test_a_loaded_model_is_audited_with_the_same_reader(
    leaky: Fit, reviews: Callable[[int, int], Texts], tmp_path: Path
) -> None:
    (clf, _), test = leaky, reviews(100, 1)
    clf.save(tmp_path / "model")
    original, loaded = (sg.audit(model, *test, sample=10) for model in (clf, sg.load(tmp_path / "model")))
    assert loaded.find(READER).value == original.find(READER).value


@pytest.mark.slow
def test_explanations_carry_the_accuracy_of_the_reader_before_and_after_saving(
    leaky: Fit, reviews: Callable[[int, int], Texts], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clf, (text, *_) = leaky[0], reviews(100, 1)[0]
    accuracy = clf.stored_.description.independent_reader[READER]["value"]
    assert accuracy < 0.75
    clf.save(tmp_path / "model")
    for classifier in (clf, sg.load(tmp_path / "model", device="cpu")):
        assert (
            classifier.explain(text).reader_accuracy
            == classifier.explain(text).to_dict()["reader_accuracy"]
            == accuracy
        )
    assert clf.explain(text, explainer="leave-one-out").reader_accuracy is None
    ended = run(capsys, "explain", tmp_path / "model", text, "--json", "--device", "cpu")
    assert json.loads(ended.out)["reader_accuracy"] == accuracy
    assert f"recovers the label from the selected words in {percent(accuracy)} of the validation texts" in ended.err


@pytest.mark.slow
def test_a_sentence_that_leaks_the_label_is_read_by_the_independent_reader(
    reviews: Callable[[int, int], Texts],
) -> None:
    texts = [reviews(many, seed)[0] for seed, many in enumerate((300, 100))]
    train, test = ((those, ["good" if "warm" in text else "bad" for text in those]) for those in texts)
    clf, messages = fitted(HonestRnp(exploration=0.0), Honest, train, ("cold", "warm", "warm"))
    report = sg.audit(clf, *test)
    assert clf.score(*test) == 1.0
    assert not [message for message in messages if LEAKAGE in message]
    assert report.find(READER).value == 1.0
    assert report.find(GAP).value == 0.0
    assert clf.stored_.description.independent_reader[READER]["value"] == 1.0


@pytest.mark.slow
def test_a_class_without_any_rationale_is_not_reported_as_leakage(reviews: Callable[[int, int], Texts]) -> None:
    """The reader cannot distinguish a neutral sentence of a fine comment from one of a toxic one.  Nothing leaks: the
    predictor gives `fine` whichever of them is selected."""
    test = one_sided_comments(100, 1, 0.55)
    clf, messages = fitted_plain("rnp", one_sided_comments(600, 0, 0.55))
    report = sg.audit(clf, *test)
    assert clf.score(*test) == 1.0
    assert report.find(READER).value < 0.9
    assert report.find(GAP).value == 0.0
    assert not [message for message in (*messages, *map(str, report.notes)) if LEAKAGE in message]
    assert next(verdict for verdict in report.verdicts if verdict.key == "faithfulness").answer != "no"


@pytest.mark.slow
def test_random_selections_are_whole_sentences_all_equally_often(
    leaky: Fit, reviews: Callable[[int, int], Texts]
) -> None:
    from steadygaze.explainers.rationale import RationaleBatch as TextViews
    from steadygaze.explainers.rationale import random_selections

    stored = leaky[0].stored_
    model = stored.model
    assert isinstance(model, Rationalizer)
    assert model.reader is not None
    batch = collate(stored.data(reviews(100, 1)[0], None), np.arange(100))
    views = TextViews(batch.ids, batch.mask, torch.zeros(100, 2), batch.index, present=batch.present)
    draw, numbers, counts = random_selections(model, model.reader.budget), model.sentences(batch), torch.zeros(5)
    for turn in range(20):
        mask = draw(views, RandomKey(turn)) > 0
        chosen = torch.where(mask, numbers, -1).amax(-1)
        assert torch.equal(mask, numbers == chosen.unsqueeze(-1))
        counts += chosen.bincount(minlength=5)
    assert (counts / 2000 - 0.2).abs().max() < 0.04


@pytest.mark.slow
def test_a_fit_interrupted_while_the_reader_is_trained_ends_with_the_same_weights(
    leaky: Fit, reviews: Callable[[int, int], Texts], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fitting, "add_reader", interrupted)
        with pytest.raises(KeyboardInterrupt):
            leaking(reviews(300, 0), checkpoint=tmp_path / "run")
    again, _ = leaking(reviews(300, 0), checkpoint=tmp_path / "run", resume=True)
    result, right = (classifier.stored_.model.state_dict() for classifier in (again, leaky[0]))
    assert result.keys() == right.keys()
    assert any(name.startswith("reader.") for name in right)
    assert all(torch.equal(result[name], right[name]) for name in right)


@pytest.mark.slow
def test_the_reader_draws_nothing_from_the_generator_of_the_caller(leaky: Fit, generator_states: list[Tensor]) -> None:
    assert leaky[0].stored_.model.reader is not None
    before, after = generator_states
    assert torch.equal(before, after)


def test_a_short_fit_trains_no_reader() -> None:
    texts = ["It is warm. We stayed."] * 30 + ["It is cold. We stayed."] * 30
    clf = TextClassifier("average", "rnp", epochs=1, settings={"dimension": 8}, device="cpu")
    clf.fit(texts, ["good"] * 30 + ["bad"] * 30)
    assert isinstance(clf.stored_.model, Rationalizer)
    assert clf.stored_.model.reader is None
    assert clf.stored_.description.independent_reader == {}
    assert sg.audit(clf, texts[:10]).find(READER).n == 0
