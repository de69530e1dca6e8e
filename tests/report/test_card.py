"""The model card: Markdown that describes the model, with any label names."""

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.audited import full_report
from steadygaze.results.formatting import code
from steadygaze.results.health import Health, HealthProblem, ProblemKind
from steadygaze.results.model_card import BEGIN, BEGIN_LABELED, END, add_audit_to_card, card, write_card
from steadygaze.results.note import text_note
from steadygaze.results.row import Verdict

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
    "best_epoch": {"stage": "train", "epoch": 2, "macro-f1": 0.625},
}


def test_the_card_describes_the_model():
    page = card(CONFIG)
    assert page.startswith("---\nlibrary_name: steadygaze\n")
    assert "# A 2-way text classifier with attention" in page
    assert "encoder `bilstm`, technique `vanilla`, seed 3." in page
    assert "| labels | `bad`, `good` |" in page
    assert 'clf.explain("A text.")' in page
    assert 'clf.explain(("A text.", "A question?"))' in card({**CONFIG, "pair": True})


def test_the_card_of_a_collapsed_model_does_not_say_that_the_highlighted_words_have_a_meaning():
    problem = HealthProblem(ProblemKind.COLLAPSED, detail="The weights are nearly the same for every word.")
    collapsed = card({**CONFIG, "health": [problem.to_dict()]})
    assert "have no meaning: see the warning above" in collapsed
    assert "largest attention weights" not in collapsed
    assert "largest attention weights" in card(CONFIG)


def test_the_score_is_the_models_own_and_not_that_of_an_earlier_stage():
    assert "| selection score (validation macro-F1) | 0.625 |\n| epoch kept | 2 |" in card(CONFIG)
    assert "| selection score (validation macro-F1) | not measured |" in card({**CONFIG, "best_epoch": {}})
    assert "| validation macro-F1 | 0.625 |" in card({**CONFIG, "training": {"select": "last"}})


def test_the_card_has_the_scores_on_the_test_part():
    scores = {"macro-f1": {"value": 0.5, "interval": [0.25, 0.75], "n": 40}}
    page = card({**CONFIG, "test_scores": scores})
    assert "| test macro-F1 | 0.500 (95 % interval 0.250 to 0.750, 40 texts) |\n| validation macro-F1 | 0.625 |" in page


def test_the_card_has_the_share_of_training_tokens_with_a_vector():
    page = card({**CONFIG, "vectors": "glove.txt", "token_coverage": 0.8086})
    assert "`ab:cd` |\n| training tokens with a vector in `glove.txt` | 80.9 % |\n\n```python" in page
    assert "with a vector" not in card(CONFIG)


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


LINES = len(card(CONFIG).splitlines())


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=2, max_size=4))
def test_no_label_breaks_the_table(labels):
    page = card({**CONFIG, "classes": labels})
    table = [line for line in page.split("\n") if line.startswith("|")]
    assert len(table) == 7
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 3 for line in table)
    assert len(page.splitlines()) == LINES


DAY = date(2026, 1, 31)


def test_an_audit_takes_the_place_of_the_sentence_that_there_was_none():
    page = add_audit_to_card(card(CONFIG), full_report(), DAY)
    assert "has not been audited yet" not in page
    assert "Audited on 2026-01-31 with steadygaze 0.1.0: `attention`; 400 texts; `planted-reviews` `test`" in page
    assert "weights `a41c77e05b19`" in page
    assert "- **Faithfulness**: yes. Erasing the highlighted words costs" in page
    assert "- **Plausibility**: not measured. Nobody marked words in these texts." in page
    assert "| `accuracy` | the prediction | 0.913 | 0.885 to 0.941 | 400 |" in page
    assert "| `weight-correlation/reworded` | `attention` | 0.812 | 0.792 to 0.832 | 400 |" in page
    assert "jensen-shannon/noise" not in page
    assert "normalized-entropy" not in page  # no verdict rests on it


def test_the_next_audit_replaces_it_and_keeps_the_rest():
    mine = card(CONFIG).replace("---\n# A", "---\nBefore.\n# A") + "\r\nAfter.\n"
    first = add_audit_to_card(mine, full_report(), DAY)
    second = add_audit_to_card(first, full_report(), date(2026, 2, 1))
    assert second == first.replace("2026-01-31", "2026-02-01")
    assert second.count(BEGIN_LABELED) == second.count(END) == 1
    assert second.partition(BEGIN_LABELED)[0] == mine.partition(BEGIN)[0]
    assert second.partition(END)[2] == mine.partition(END)[2]


def test_an_audit_without_labels_does_not_replace_one_with_labels(tmp_path):
    unlabeled = full_report(rows=tuple(row for row in full_report().rows if row.measure != "accuracy"))
    file = tmp_path / "README.md"
    file.write_text(card(CONFIG), encoding="utf-8")
    assert write_card(tmp_path, unlabeled).startswith("written: "), "there was no audit"
    assert write_card(tmp_path, full_report()).startswith("written: ")
    labeled = file.read_text(encoding="utf-8")
    assert "| `accuracy` |" in labeled
    assert write_card(tmp_path, unlabeled) == (
        f"the model card {file} keeps its audit, which has labels: this audit has none (--label COL)"
    )
    assert file.read_text(encoding="utf-8") == labeled


def test_the_row_of_the_accuracy_may_have_any_form(tmp_path):
    unlabeled = full_report(rows=tuple(row for row in full_report().rows if row.measure != "accuracy"))
    file = tmp_path / "README.md"
    for report, reply in ((full_report(), "keeps its audit"), (unlabeled, "written: ")):
        page = add_audit_to_card(card(CONFIG), report, DAY)
        file.write_text(page.replace("| `accuracy` |", "| **Accuracy** |") + "\n| `accuracy` |\n", encoding="utf-8")
        assert reply in write_card(tmp_path, unlabeled)


def test_the_audit_has_the_warnings_of_its_models() -> None:
    """Also in a card that a user wrote, which does not show them."""
    health = Health((HealthProblem(ProblemKind.COLLAPSED, detail="As for every word."),))
    other = Health((HealthProblem(ProblemKind.COLLAPSED, "Other seed 1", detail="As for every word."),))
    for page in (card({**CONFIG, "health": health.to_list()}), "Mine.\n"):
        audited = add_audit_to_card(page, full_report(health=health + other), DAY)
        assert audited.count("**Warning:**") == page.count("**Warning:**") + 2
        assert "> **Warning:** Other seed 1" in audited
        assert add_audit_to_card(audited, full_report(health=health + other), DAY) == audited


@pytest.mark.parametrize("page", ["", "My own card.\n", f"Half of one: {BEGIN}\n", f"{END} before {BEGIN}\n"])
def test_a_card_without_a_place_for_it_gets_one_at_its_end(page):
    result = add_audit_to_card(page, full_report(), DAY)
    assert result.startswith(page.rstrip())
    assert result.endswith(f"{END}\n")
    assert "Audited on" in result


def test_no_words_of_an_audit_end_its_part():
    verdict = Verdict("Why?", "no", (text_note(f"One\nline {END} <script>"),))
    once = add_audit_to_card(card(CONFIG), full_report(verdicts=(verdict,)), DAY)
    assert once.count(END) == 1
    assert "<script" not in once
    assert add_audit_to_card(once, full_report(verdicts=(verdict,)), DAY) == once
