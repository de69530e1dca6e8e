"""The nouns check their own shapes."""

import dataclasses
import subprocess
import sys

import pytest
import torch

from steadygaze.core.types import Batch, Encoded, Example, Forward


def batch(**changes):
    values = {
        "ids": torch.tensor([[2, 5, 3], [2, 3, 0]]),
        "present": torch.tensor([[True, True, True], [True, True, False]]),
        "mask": torch.tensor([[False, True, False], [False, False, False]]),
        "index": torch.tensor([4, 7]),
        "label": torch.tensor([1, 0]),
    }
    return Batch(**{**values, **changes})


@pytest.mark.parametrize("name", ["rationales", "sentences"])
@pytest.mark.parametrize("span", [(-1, 2), (2, 2), (3, 2), (0, 6)])
def test_a_span_lies_inside_its_text(name, span):
    with pytest.raises(ValueError, match=f"{name} span .* does not lie in a text of 5 characters"):
        Example("hello", **{name: ((0, 5), span)})


def test_an_example_may_know_nothing_but_its_text():
    example = Example("hello")
    assert (example.label, example.question, example.rationales, example.sentences) == (None, None, None, None)
    assert Example("hello", rationales=((0, 5),)).rationales == ((0, 5),)


@pytest.mark.parametrize(
    "changes",
    [
        {"ids": torch.zeros(2, 4)},
        {"mask": torch.zeros(3, 3)},
        {"index": torch.zeros(3)},
        {"label": torch.zeros(2, 1)},
        {"weight": torch.zeros(1)},
        {"question_ids": torch.zeros(2, 2)},
        {"question_ids": torch.zeros(2, 2), "question_present": torch.zeros(2, 3)},
    ],
)
def test_a_batch_whose_parts_do_not_fit_is_refused(changes):
    with pytest.raises(ValueError, match="shape"):
        batch(**changes)


def test_gold_is_there_or_an_error():
    assert batch().gold.tolist() == [1, 0]
    with pytest.raises(ValueError, match="no labels"):
        _ = batch(label=None).gold


def test_the_questions_as_texts_keep_the_rows_and_leave_what_belongs_to_the_texts():
    question = torch.tensor([[6, 1, 8, 9], [4, 0, 0, 0]])
    pairs = batch(
        question_ids=question,
        question_present=question > 0,
        question_word_starts=question > 7,
        word_starts=torch.ones(2, 3, dtype=torch.bool),
        sentences=torch.zeros(2, 3, dtype=torch.long),
    )
    asked = pairs.question_as_text()
    assert torch.equal(asked.ids, question)
    assert torch.equal(asked.present, question > 0)
    assert torch.equal(asked.mask, question > 0)
    assert torch.equal(asked.word_starts, question > 7)
    assert (asked.sentences, asked.question_ids, asked.question_present) == (None, None, None)
    assert (asked.index.tolist(), asked.label.tolist()) == ([4, 7], [1, 0])
    words = question > 1
    assert torch.equal(dataclasses.replace(pairs, question_mask=words).question_as_text().mask, words)
    assert batch().question_as_text() is None


def test_a_moved_batch_is_the_same_elsewhere():
    moved = batch(weight=torch.ones(2)).to("meta")
    assert {value.device.type for value in (moved.ids, moved.present, moved.mask, moved.index, moved.weight)} == {
        "meta"
    }
    assert moved.question_ids is None
    assert len(moved) == 2
    assert torch.equal(batch().to("cpu").ids, batch().ids)


def test_scores_and_weights_have_one_shape():
    with pytest.raises(ValueError, match="shapes differ"):
        Forward(Encoded(torch.zeros(2, 3, 4)), torch.zeros(2, 3), torch.zeros(2, 4), torch.zeros(2, 2))


def test_nouns_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        batch().ids = torch.zeros(1)


def test_the_packages_for_texts_do_not_import_torch():
    code = "import sys, steadygaze.core.types, steadygaze.results.row; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
