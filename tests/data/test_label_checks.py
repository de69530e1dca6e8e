"""Labels before training: near-duplicates, rare classes, counts; and white space, wherever data are read."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadygaze.data.corpora import CORPORA
from steadygaze.data.label_checks import (
    count_labels,
    count_sentence,
    near_duplicate_sentence,
    near_duplicates,
    rare_sentence,
)
from steadygaze.data.published_corpora import PUBLISHED_CORPORA
from steadygaze.data.text_checks import check_labels, positions, strip_label
from steadygaze.data.typos import without_letter

SAME = [
    ("case", {"ok": 50, "Ok": 50}),
    ("inner spaces", {"not ok": 50, "not  ok": 9, "notok": 3}),
    ("a separator", {"not ok": 50, "not_ok": 9, "not-ok": 3}),
    ("Unicode normalization", {"caf\u00e9": 5, "cafe\u0301": 4, "\uff43af\u00e9": 1}),
    ("invisible characters", {"ab": 5, "a\u200bb": 4}),
    ("one letter too few, too many, another, or moved", {"positive": 50, "postive": 2, "posittive": 1, "pozitive": 1}),
    ("neighboring letters", {"positive": 50, "positvie": 2, "positiev": 1}),
    ("a mark or quotes", {"positive": 50, "positive.": 2, "'positive'": 1, "“Positive,”": 1}),
    ("a plural", {"complaint": 50, "complaints": 5}),
    ("a last letter too few", {"abusive": 50, "abusiv": 5}),
    ("one word of several", {"very negative": 50, "vrey negative": 1}),
    ("a typo in another spelling", {"abusive": 50, "Abusive": 40, "abusve": 2, "Abusve": 1}),
]
APART: list[dict[Any, int]] = [
    {"1": 50, "2": 1},
    {1: 50, 2: 1, 11: 1},
    {"A": 50, "B": 1},
    {"pos": 50, "neg": 1},
    {"cat": 50, "car": 1},
    {"C": 50, "C++": 40, "C#": 30, "c--": 1},
    {"!": 50, "!!": 9, ".": 4, "'": 1, '"': 1},
    {"why": 50, "why?": 40},
    {":)": 50, ":(": 40},
    {"class1": 50, "class2": 1},
    {"class 1": 50, "class -1": 1},
    {"1 2": 50, "12": 1},
    {"Plan A": 50, "Plan B": 1},
    {"groupa": 50, "groupb": 1},
    {"Iran": 50, "Iraq": 1},
    {"type I": 50, "type II": 1},
    {"contact": 50, "contract": 40},
    {"typical": 1000, "atypical": 10},
    {"formal": 1000, "normal": 10},
    {"male": 1000, "female": 10},
]


@pytest.mark.parametrize(("kind", "counts"), SAME, ids=[kind for kind, _ in SAME])
def test_one_class_in_several_spellings_is_one_group_with_the_most_frequent_first(
    kind: str, counts: dict[str, int]
) -> None:
    (group,) = near_duplicates(counts)
    assert sorted(group) == sorted(counts)
    assert counts[group[0]] == max(counts.values())


@pytest.mark.parametrize("counts", APART, ids=lambda counts: " ".join(map(str, counts)))
def test_numbers_single_letters_short_words_ends_and_frequent_words_are_classes_of_their_own(
    counts: dict[Any, int],
) -> None:
    assert near_duplicates(counts) == []


def test_a_typo_has_at_most_a_fifth_of_the_texts_of_the_other_label() -> None:
    assert near_duplicates({"contact": 50, "contract": 10}) == [["contact", "contract"]]
    assert near_duplicates({"contact": 50, "contract": 11}) == []


@given(st.dictionaries(st.text(max_size=8), st.integers(1, 100), max_size=8))
def test_each_label_is_in_at_most_one_group_and_a_group_has_several(counts: dict[str, int]) -> None:
    groups = near_duplicates(counts)
    members = Counter(label for group in groups for label in group)
    assert set(members) <= set(counts)
    assert set(members.values()) <= {1}
    assert all(len(group) > 1 for group in groups)


@given(st.from_regex(r"[a-z]{5,12}", fullmatch=True))
def test_every_word_without_an_inner_letter_is_a_typo_of_it(word: str) -> None:
    for typo in without_letter(word):
        assert near_duplicates({word: 50, typo: 1}) == [[word, typo]]


@pytest.mark.slow
def test_many_labels_take_a_few_keys_each() -> None:
    """Not a comparison of all pairs: 5,000 labels have 12 million."""
    counts = {f"label number {number} of many": 9 for number in range(5000)}
    assert near_duplicates(counts) == []


@pytest.mark.slow
def test_texts_in_the_column_of_labels_are_not_compared_letter_by_letter() -> None:
    """The keys of one text of 1,000 words would have 7 million parts."""
    texts = {f"{number} {'another word ' * 500}": 9 for number in range(200)}
    assert near_duplicates(texts) == []


def test_blanks_inside_a_label_take_linear_time() -> None:
    label = f"a{' ' * 100_000}b"
    assert strip_label(f" {label} ") == label


@pytest.mark.parametrize("name", PUBLISHED_CORPORA)
def test_no_published_corpus_is_refused(name: str) -> None:
    layouts = PUBLISHED_CORPORA[name]
    labels = {label for label in _strings(layouts) if isinstance(label, str)}
    assert near_duplicates(dict.fromkeys(labels, 100)) == []


def _strings(corpus: Any) -> list[str]:
    """The names of the labels of all layouts of a corpus."""
    found = []
    for value in vars(corpus).values():
        labels = getattr(value, "labels", None) or getattr(getattr(value, "layout", None), "labels", None)
        found += list((labels or {}).values())
    return found


@pytest.mark.parametrize("name", [name for name in CORPORA if name not in PUBLISHED_CORPORA])
def test_no_generated_corpus_is_refused(name: str) -> None:
    corpus = CORPORA[name].load(name, {"sizes": [200, 20, 20]}, None, 0)
    assert near_duplicates(count_labels(e.label for split in corpus.splits.values() for e in split)) == []


def test_the_sentences_list_labels_with_their_numbers_of_texts() -> None:
    counts = count_labels(["ok"] * 1200 + ["Ok"] * 3 + ["abusive"] * 40 + ["abusve", None])
    assert count_sentence(counts) == "4 classes: 'ok' 1,200, 'abusive' 40, 'Ok' 3, 'abusve' 1"
    assert near_duplicate_sentence(counts) == (
        "some labels are probably one class in several spellings: "
        "'ok' (1,200 texts), 'Ok' (3 texts); 'abusive' (40 texts), 'abusve' (1 text)"
    )
    assert rare_sentence(counts) == (
        "2 classes have fewer than 5 training texts, too few to learn: 'Ok' (3 texts), 'abusve' (1 text)"
    )
    assert rare_sentence({"a": 5, "b": 6}) == near_duplicate_sentence({"a": 5, "b": 6}) == ""


def test_labels_that_look_alike_are_shown_by_their_code_points() -> None:
    assert "'caf\\xe9' (2 texts), 'cafe\\u0301' (1 text)" in near_duplicate_sentence({"caf\u00e9": 2, "cafe\u0301": 1})


def test_a_long_list_of_classes_is_cut() -> None:
    counts = {f"{number:03d}": 1000 - number for number in range(100)}
    assert count_sentence(counts).endswith("'019' 981 … the rarest is '099' 901")
    assert len(rare_sentence(dict.fromkeys(counts, 1))) < 450


@pytest.mark.parametrize("space", [" ", "\t", "\u00a0", "\u200b", "\ufeff", "\u2003", " \u200b\u00a0"])
def test_white_space_around_a_label_does_not_make_a_class(space: str) -> None:
    assert strip_label(f"{space}not ok{space}") == "not ok"
    assert check_labels(["ok", f"{space}ok{space}", "bad"]) == ["ok", "ok", "bad"]


def test_a_class_of_a_foreign_model_with_white_space_is_matched_by_its_label() -> None:
    assert positions(["ok", "bad"], ["bad ", "ok"]) == [1, 0]
    assert positions(["ok", "ok "], ["ok ", "ok"]) == [1, 0], "both are classes of the model"
