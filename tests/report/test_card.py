"""The model card: Markdown that says what the model is, whatever its labels are called."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadygaze.report.card import card, code

CONFIG = {
    "steadygaze": "0.1.0",
    "classes": ["bad", "good"],
    "pair": False,
    "encoder": "bilstm",
    "technique": "vanilla",
    "seed": 3,
    "max_length": 512,
    "corpus": "ab:cd",
    "history": [
        {"stage": "teacher", "epoch": 1, "macro-f1": 0.99},
        {"stage": "train", "epoch": 1, "macro-f1": 0.7},
        {"stage": "train", "epoch": 2, "macro-f1": 0.625},
    ],
    "kept": {"stage": "train", "epoch": 2, "macro-f1": 0.625},
}


def test_the_card_says_what_the_model_is():
    page = card(CONFIG)
    assert page.startswith("---\nlibrary_name: steadygaze\n")
    assert "# A 2-way text classifier that shows its attention" in page
    assert "encoder `bilstm`, technique `vanilla`, seed 3." in page
    assert "| labels | `bad`, `good` |" in page
    assert 'clf.explain("A text.")' in page
    assert 'clf.explain(("A text.", "A question?"))' in card({**CONFIG, "pair": True})


def test_the_score_is_the_models_own_and_not_that_of_an_earlier_stage():
    assert "| validation macro-F1 | 0.625 |\n| epoch kept | 2 |" in card(CONFIG)
    assert "| validation macro-F1 | not measured |" in card({**CONFIG, "kept": {}})


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("good", "`good`"),
        (5, "`5`"),
        ("a|b", "`a\\|b`"),
        ("a`b", "`` a`b ``"),
        ("``", "``` `` ```"),
        ("two\nlines\tof  it", "`two lines of it`"),
        ("<script>", "`<script>`"),
        ("{seed}", "`{seed}`"),
    ],
)
def test_a_label_is_shown_literally(label, shown):
    assert code(label) == shown
    assert f"| labels | {shown}, `other` |\n" in card({**CONFIG, "classes": [label, "other"]})


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=2, max_size=4))
def test_no_label_breaks_the_table(labels):
    page = card({**CONFIG, "classes": labels})
    table = [line for line in page.split("\n") if line.startswith("|")]
    assert len(table) == 7
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 3 for line in table)
    assert len(page.splitlines()) == len(card(CONFIG).splitlines())
