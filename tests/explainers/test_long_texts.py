"""A long text: readings and memory stay bounded, and consecutive words share a weight."""

import numpy as np
import pytest
import torch

import steadygaze as sg
from contract.tiny import cached_classifier
from explainers.worked import random_texts, row
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.core.errors import UserError
from steadygaze.data.batches import Data, by_length, collate
from steadygaze.explainers import class_probability, leave_one_out, word_deletion
from steadygaze.explainers.kernel_shap import KernelShap
from steadygaze.explainers.leave_one_out import LeaveOneOut
from steadygaze.explainers.lime import Lime
from steadygaze.perturbations.word_removal import MAX_UNITS, take_rows, units_of

SEGMENTS = "segments of consecutive words"


class Counted:
    """A black box that counts the texts it reads."""

    classes_ = ("bad", "good")

    def __init__(self) -> None:
        self.read = 0

    def predict_proba(self, texts: list[str]) -> np.ndarray:
        self.read += len(texts)
        good = np.array([text.count("good") for text in texts], float)
        p = 1 / (1 + np.exp(2 - good / 4))
        return np.stack([1 - p, p], 1)


def text(words: int, good: tuple[int, ...] = (3, 4)) -> str:
    return " ".join("good" if place in good else f"w{place % 50}" for place in range(words))


def batch_of(texts: list[str]):
    box = Counted()
    adapter = as_adapter(box).for_pairs(False)
    data: Data = adapter.data(adapter.tokens.place(texts), None)
    return box, adapter.model, collate(data, np.arange(len(texts)))


@pytest.mark.sweep
@pytest.mark.parametrize("words", [300, 600, 1200])
@pytest.mark.parametrize(
    ("explainer", "readings"),
    [(LeaveOneOut(max_units=20), 20), (Lime(max_units=20, samples=64), 80), (KernelShap(max_units=20), 1024)],
    ids=["leave-one-out", "lime", "kernel-shap"],
)
def test_readings_do_not_grow_with_the_words_above_the_limit(explainer, readings, words):
    box, model, batch = batch_of([text(words)])
    with pytest.warns(UserWarning, match=f"a text of {words:,} words is explained in at most 20 {SEGMENTS}"):
        explainer.explain(model, batch)
    assert box.read <= readings + 2, "the subsets, the whole text and nothing"


def test_a_segment_loses_what_all_its_words_lose_and_they_share_it():
    box, model, batch = batch_of([text(40, good=(4, 5, 30))])
    with pytest.warns(UserWarning, match=SEGMENTS):
        weights = LeaveOneOut(max_units=10).explain(model, batch).weights[0]
    whole = box.predict_proba([text(40, good=(4, 5, 30))])[0, 1]
    without = box.predict_proba(["good"])[0, 1]
    bad = 1 - whole  # with three good words the other class is predicted
    assert weights[4:8].tolist() == pytest.approx([(bad - (1 - without)) / 4] * 4)
    assert weights[:4].tolist() == pytest.approx([0.0] * 4)


@pytest.mark.parametrize("words", [19, 20])
def test_words_are_single_up_to_the_limit(words):
    _, model, batch = batch_of([text(words)])
    result = LeaveOneOut(max_units=20).explain(model, batch).weights
    torch.testing.assert_close(result, LeaveOneOut().explain(model, batch).weights, rtol=0, atol=0)


def test_each_text_of_a_batch_has_segments_of_its_own_size():
    _, _, batch = batch_of([text(3), text(10), text(25)])
    units = units_of(batch, max_units=10)
    assert units.mask.sum(-1).tolist() == [3, 10, 9]
    assert units.number[2, :25].tolist() == [place // 3 for place in range(25)]
    placed = units.on_first(torch.ones(units.mask.shape, dtype=torch.float64) * units.mask)
    assert placed.sum(-1).tolist() == pytest.approx([3, 10, 9]), "no weight is lost"


@pytest.mark.parametrize(
    "explainer", [LeaveOneOut(), Lime(samples=64), KernelShap(samples=64)], ids=lambda e: type(e).__name__
)
def test_masks_are_made_in_parts_that_fit_in_memory(explainer, monkeypatch):
    sizes = []

    def measured(model, batch, rows, gone, aim, output):
        sizes.append(gone.numel())
        return class_probability.predict_without(model, batch, rows, gone, aim, output)

    for module in (leave_one_out, word_deletion):
        monkeypatch.setattr(module, "predict_without", measured)
    monkeypatch.setattr(word_deletion, "ENTRIES", 1 << 12)
    _, model, batch = batch_of([text(60), text(120)])
    explainer.explain(model, batch)
    assert len(sizes) > 1
    assert max(sizes) <= 1 << 12


@pytest.mark.slow
def test_an_audit_of_a_long_text_reads_it_once_for_each_segment():
    box = Counted()
    with pytest.warns(UserWarning, match=f"at most {MAX_UNITS:,} {SEGMENTS}"):
        sg.audit(box, [text(1200), "a good film", "a bad film"], ["bad", "bad", "bad"], sample=3)
    assert box.read < 1700, "600 segments of two words for two classes, 250 for the best order, and the other protocols"


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_size_below_one_is_refused(size):
    adapter = as_adapter(Counted()).for_pairs(False)
    data = adapter.data(adapter.tokens.place(["a", "b"]), None)
    with pytest.raises(UserError, match=f"batch_size must be a whole number from 1 up, found {size}"):
        list(by_length(data, size))


@pytest.mark.sweep(keep=0)
@pytest.mark.parametrize("kind", [Lime, KernelShap])
def test_a_long_text_gets_the_same_again_and_in_any_company(kind, monkeypatch):
    """tests/contract/test_explainers.py tests short texts."""
    model, words = cached_classifier("bilstm", False, torch.float32), random_texts(14, 40, 3)
    explainer = kind(samples=64)
    together = explainer.explain(model, words).weights
    assert torch.equal(explainer.explain(model, words).weights, together)
    alone = explainer.explain(model, row(words, 0)).weights
    torch.testing.assert_close(alone[0], together[0, :15], rtol=0, atol=1e-5)
    wide = explainer.explain(model, take_rows(words, torch.tensor([2, 0, 0]))).weights
    torch.testing.assert_close(wide[1:], together[[0, 0]], rtol=0, atol=1e-5)
    monkeypatch.setattr(word_deletion, "ENTRIES", 1)
    torch.testing.assert_close(explainer.explain(model, words).weights, together, rtol=0, atol=1e-5)
    assert (kind(samples=64, seed=1).explain(model, words).weights[0] != together[0]).any()
