"""Questions to a black box: none twice, and none to one that cannot be explained."""

import numpy as np
import pytest
import torch

from contract.tiny import assert_close
from explainers.learned.products import PLAIN, A, B, C, Changing, Products, data_of
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.core.errors import UserError
from steadygaze.data.batches import collate
from steadygaze.explainers.learned.answer_cache import AnswerCache
from steadygaze.explainers.learned.black_box_queries import REPEATED_INPUTS, answers, query

TEXTS = [[A], [PLAIN, B, C, PLAIN], [A, B], [B], [PLAIN, A, C], [A, B, C], [C], [PLAIN] * 6]
"""p(class 1): .225  .4  .9  .45  .2  .8  .1  .1125"""
ANSWERS = torch.tensor([0.225, 0.4, 0.9, 0.45, 0.2, 0.8, 0.1, 0.1125], dtype=torch.float64)


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_every_text_is_answered_in_its_place_whatever_the_batches(batch_size):
    model = Products()
    result = query(model, data_of(*TEXTS), batch_size=batch_size)
    assert_close(result, torch.stack([1 - ANSWERS, ANSWERS], -1))
    assert model.query_count == 2 * len(TEXTS)  # fewer than REPEATED_INPUTS: all of them twice
    assert max(map(len, model.read)) <= batch_size


def test_only_the_first_of_many_texts_are_queried_twice():
    model = Products()
    query(model, data_of(*TEXTS * 10))
    assert model.query_count == 80 + REPEATED_INPUTS


def test_progress_runs_from_the_cached_answers_to_all(tmp_path):
    calls = []
    kept = AnswerCache(tmp_path / "kept")
    for _ in range(2):
        query(Products(), data_of(*TEXTS), kept, lambda *message: calls.append(message), batch_size=5)
    what = "querying the black box"
    assert calls == [(what, 0, 8), (what, 5, 8), (what, 8, 8), (what, 8, 8)]


def test_a_black_box_that_fails_half_way_is_queried_only_for_the_rest(tmp_path):
    data, broken = data_of(*TEXTS), Products(fails_after=2)
    with pytest.raises(
        UserError, match=r"failed: RuntimeError: out of luck.*6 of 8 inputs.*cached in .*resumes"
    ) as caught:
        query(broken, data, AnswerCache(tmp_path / "kept"), batch_size=3)
    assert isinstance(caught.value.__cause__, RuntimeError)
    mended = Products()
    assert_close(
        query(mended, data, AnswerCache(tmp_path / "kept"), batch_size=4)[:, 1], ANSWERS
    )  # other batches than before
    assert [len(batch) for batch in mended.read] == [2, 4, 4]  # two missing, then all eight again
    assert sorted(mended.read[0].index.tolist()) == [1, 7]  # the longest


def test_without_a_folder_the_error_names_the_option_that_caches():
    with pytest.raises(UserError, match=r"3 of 8 inputs were done; pass a folder"):
        query(Products(fails_after=1), data_of(*TEXTS), batch_size=3)


def test_an_interruption_is_nobodys_fault(tmp_path):
    def interrupt(logits):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        query(Changing(interrupt, after=1), data_of(*TEXTS), AnswerCache(tmp_path / "kept"), batch_size=5)
    assert len(AnswerCache(tmp_path / "kept").missing(8)) == 3


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda logits: logits * torch.nan, "is not finite.*1 of 8 inputs were done"),
        (lambda logits: logits[:, :1], r"shape \(1, 1\); 1 rows of 2 probabilities"),
        (lambda logits: torch.cat([logits, logits], -1), r"shape \(1, 4\)"),
        (lambda logits: logits[0], r"shape \(2,\)"),
        (lambda logits: torch.cat([logits, logits]), r"shape \(2, 2\)"),
    ],
)
def test_answers_that_are_no_probabilities_are_refused_at_once(change, says):
    model = Changing(change, after=1)
    with pytest.raises(UserError, match=says):
        query(model, data_of(*TEXTS), batch_size=1)
    assert len(model.read) == 2


def test_one_class_is_refused():
    with pytest.raises(UserError, match="rows of two or more probabilities"):
        query(Changing(lambda logits: logits[:, :1], after=0), data_of(*TEXTS))


def test_a_black_box_that_changes_the_order_of_its_classes_is_caught():
    flips = Changing(lambda logits: logits.flip(-1), after=1)
    with pytest.raises(UserError, match=r"changed the order of its classes: first \[.*\], then \[.*\]"):
        query(flips, data_of(*TEXTS))


def test_an_order_is_recognised_among_many_classes_and_columns_that_are_alike():
    """Columns 0 and 2 are the same: the nearest column alone gives no one-to-one order."""
    message = np.array([[0.2, 0.5, 0.2, 0.1], [0.3, 0.1, 0.3, 0.3], [0.05, 0.8, 0.05, 0.1]])
    turn = iter([message, message[:, [1, 0, 3, 2]]])
    with pytest.raises(UserError, match="changed the order of its classes"):
        answers(lambda rows: next(turn), lambda rows: [rows], 3, AnswerCache())


def test_a_black_box_with_different_answers_to_one_input_is_an_error():
    noisy = Changing(lambda logits: logits + torch.tensor([0.3, 0.0]), after=1)
    with pytest.raises(UserError, match="predicts different probabilities for the same input"):
        query(noisy, data_of(*TEXTS))


def test_rounding_is_not_held_against_it():
    result = query(Changing(lambda logits: logits.half().double(), after=1), data_of(*TEXTS))
    torch.testing.assert_close(result, query(Products(), data_of(*TEXTS)), atol=1e-3, rtol=0)


def test_another_black_box_than_the_one_whose_answers_are_kept_is_caught(tmp_path):
    query(Products(), data_of(*TEXTS), AnswerCache(tmp_path / "kept"))
    with pytest.raises(UserError, match=r"unless .*kept has the answers of another black box"):
        query(Changing(lambda logits: logits * 3, after=0), data_of(*TEXTS), AnswerCache(tmp_path / "kept"))


def test_a_failure_of_the_repeated_query_loses_no_answer(tmp_path):
    with pytest.raises(UserError, match=r"out of luck.*8 of 8 inputs are done and cached"):
        query(Products(fails_after=1), data_of(*TEXTS), AnswerCache(tmp_path / "kept"))
    assert len(AnswerCache(tmp_path / "kept").missing(8)) == 0


class Sayings:
    """Of texts: half and half at first, then something else."""

    def __init__(self, then):
        self.calls, self.then = 0, then

    def __call__(self, texts):
        self.calls += 1
        return [[0.3, 0.7] if self.calls == 1 else self.then] * len(texts)


@pytest.mark.parametrize(
    ("then", "says"),
    [
        ([0.7, 0.3], "changed the order"),
        ([0.5, 0.5], "predicts different probabilities"),
        ([np.nan, 0.5], "not all finite"),
    ],
)
def test_a_black_box_that_reads_text_must_look_again_though_its_answers_are_remembered(then, says):
    adapter = as_adapter(Sayings(then), classes=["bad", "good"]).for_pairs(False)
    texts = ["a good film", "a bad film", "film"]
    with pytest.raises(UserError, match=says):
        query(adapter.model, adapter.data(adapter.tokens.place(texts), None))


def test_answers_of_a_deterministic_black_box_are_cached_again():
    stable = Sayings([0.3, 0.7])
    adapter = as_adapter(stable, classes=["bad", "good"]).for_pairs(False)
    data = adapter.data(adapter.tokens.place(["a good film", "a bad film"]), None)
    assert query(adapter.model, data).tolist() == pytest.approx(np.array([[0.3, 0.7]] * 2))
    assert stable.calls == 2
    adapter.model(collate(data, np.arange(2)))
    assert stable.calls == 2


def test_images_are_queried_by_their_rows():
    """Four images of one pixel, which is the probability of class 1; two at a time."""
    images, queries = np.array([0.1, 0.2, 0.3, 0.9]), []

    def answer(rows):
        queries.append(rows.tolist())
        return np.stack([1 - images[rows], images[rows]], 1).astype(np.float32)

    result = answers(answer, lambda rows: np.split(rows, range(2, len(rows), 2)), 4, AnswerCache())
    np.testing.assert_allclose(result[:, 1], images, rtol=1e-6)
    assert queries == [[0, 1], [2, 3]] * 2


def test_pairs_are_read_with_their_questions():
    adapter = as_adapter(
        lambda pairs: [[0.5, 0.5] if q == "why?" else [0.1, 0.9] for _, q in pairs], classes=["a", "b"]
    )
    adapter = adapter.for_pairs(True)
    data = adapter.data(adapter.tokens.place(["one", "two three"]), ["who?", "why?"])
    assert_close(query(adapter.model, data)[:, 1], torch.tensor([0.9, 0.5], dtype=torch.float64))
