"""Pairs of synonyms with different class frequencies."""

import itertools
import string
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from steadygaze.core.errors import SynonymWarning
from steadygaze.data.class_frequencies import (
    ClassFrequencies,
    class_frequencies,
    exact_p_values,
    smallest_p_values,
    suspicious_pairs,
    suspicious_pairs_in_groups,
    without_pairs,
)
from steadygaze.data.synonym_grouping import group_synonyms
from steadygaze.data.synonym_groups import RULES, Rule, SynonymGroups
from steadygaze.estimator.text_classifier import TextClassifier

TEXTS = [f"a good film number {'abcdefghij'[i % 10]}" for i in range(30)] + [
    f"a bad movie , part {i}" for i in range(30)
]
LABELS = ["pos"] * 30 + ["neg"] * 30
TABLE = {"good": ["bad", "nice"], "bad": ["good"], "film": ["movie"], "movie": ["film"], "nice": ["good"]}


def p_value(first: list[int], second: list[int]) -> float:
    """By enumeration, in exact integers."""
    n, m = sum(first), sum(second)
    tails = []
    for a, b in zip(first, second, strict=True):
        ways = [comb(a + b, k) * comb(n + m - a - b, n - k) for k in range(n + 1)]
        tails += [sum(ways[: a + 1]), sum(ways[a:])]
    tests = len(first) if len(first) > 2 else 1
    return min(1.0, 2 * tests * min(tails) / comb(n + m, n))


COUNTS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=2, max_size=4)


@given(COUNTS)
def test_p_values_are_those_of_the_hypergeometric_distribution(counts: list[tuple[int, int]]) -> None:
    first, second = (list(column) for column in zip(*counts, strict=True))
    if sum(first) and sum(second):
        result = exact_p_values(np.array([first]), np.array([second]))
        assert result.tolist() == pytest.approx([p_value(first, second)], rel=1e-9)


@pytest.mark.parametrize(
    ("first", "second"), [([3, 0], [0, 3]), ([9, 1], [4, 6]), ([5, 5], [5, 5]), ([1, 8], [9, 0]), ([2, 0], [30, 40])]
)
def test_p_values_of_two_classes_are_those_of_fisher(first: list[int], second: list[int]) -> None:
    """Twice the smaller tail, once: the tests of the two classes are the same."""
    tails = [fisher_exact([first, second], alternative=side).pvalue for side in ("less", "greater")]
    assert exact_p_values(np.array([first]), np.array([second])) == pytest.approx(min(1, 2 * min(tails)))
    margins = (sum(first), sum(second), first[0] + second[0])
    tables = [[[k, margins[0] - k], [margins[2] - k, margins[1] - margins[2] + k]] for k in range(margins[0] + 1)]
    tables = [table for table in tables if min(map(min, table)) >= 0]
    smallest = min(fisher_exact(table, alternative=side).pvalue for table in tables for side in ("less", "greater"))
    assert smallest_p_values(np.array([first]), np.array([second])) == pytest.approx(min(1, 2 * smallest))


def test_rare_pairs_do_not_weaken_the_check_of_others() -> None:
    """2 / C(10, 5) = 0.008 is not rejected among 100 pairs, 99 of which cannot be rejected."""
    rare = {f"rare{i}": (1, 0) for i in range(99)}
    frequencies = ClassFrequencies(("0", "1"), {"good": (5, 0), "bad": (0, 5), "film": (1, 1), **rare})
    pairs = suspicious_pairs({"good": ["bad"], "film": [*rare]}, frequencies)
    assert [(pair.word, pair.synonym) for pair in pairs] == [("bad", "good")]


def test_class_frequencies_count_texts_of_each_class() -> None:
    frequencies = class_frequencies(["good good", "Good film", "film"], [1, 0, 0])
    assert frequencies.classes == ("0", "1")
    assert frequencies.counts == {"good": (1, 1), "film": (2, 0)}
    assert frequencies.total == {"good": 2, "film": 2}


def test_words_that_define_classes_are_suspicious() -> None:
    pairs = suspicious_pairs(TABLE, class_frequencies(TEXTS, LABELS))
    assert [(pair.word, pair.synonym, pair.counts) for pair in pairs] == [
        ("bad", "good", ((30, 0), (0, 30))),
        ("film", "movie", ((0, 30), (30, 0))),
    ]
    assert pairs[0].p_value == pytest.approx(2 / comb(60, 30))
    assert without_pairs(TABLE, pairs) == {"good": ["nice"], "nice": ["good"]}


def test_small_differences_and_rare_words_are_not_suspicious() -> None:
    texts = ["film"] * 5500 + ["movie"] * 4500 + ["film"] * 4500 + ["movie"] * 5500
    assert not suspicious_pairs({"film": ["movie"]}, class_frequencies(texts, [1] * 10_000 + [0] * 10_000))
    assert not suspicious_pairs({"good": ["bad"]}, class_frequencies(["good", "bad"], [1, 0]))
    assert not suspicious_pairs({"good": ["bad"]}, class_frequencies(["good", "bad"], [1, 1]))


def test_suspicious_pairs_are_not_grouped_unless_they_are_kept() -> None:
    frequencies = class_frequencies(TEXTS, LABELS)
    assert group_synonyms(TABLE, frequencies).groups.groups == (("good", "nice"),)
    kept = group_synonyms(TABLE, frequencies, keep_suspicious=True)
    assert kept.groups.groups == (("bad", "good"), ("film", "movie"))
    assert len(kept.suspicious) == 2


NUMBERS = {"incredible": (600, 600), "awesome": (350, 650), "awful": (650, 350)}
TRIANGLE = {"incredible": ["awesome", "awful"], "awesome": ["incredible", "awful"], "awful": ["incredible", "awesome"]}
PATH = {"incredible": ["awesome", "awful"], "awesome": ["incredible"], "awful": ["incredible"]}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("table", [TRIANGLE, PATH], ids=["triangle", "path"])
def test_suspicious_pairs_are_not_merged_through_a_shared_synonym(table: dict[str, list[str]], rule: Rule) -> None:
    """The words of a path are not synonyms of each other in the table."""
    grouping = group_synonyms(table, ClassFrequencies(("0", "1"), NUMBERS), rule)
    assert grouping.groups.groups == (("incredible", "awesome"),)
    if table is TRIANGLE or rule == "star":
        assert [(pair.word, pair.synonym) for pair in grouping.suspicious] == [("awesome", "awful")]


def test_all_pairs_inside_given_groups_are_compared() -> None:
    """The representative occurs in no text."""
    groups = SynonymGroups((("tremendous", "good", "bad"),))
    clf = TextClassifier("average", epochs=1, settings={"small_data": False}, synonym_groups=groups, device="cpu")
    with pytest.warns(SynonymWarning, match="1 pairs .* are merged in the given groups: bad/good"):
        clf.fit(TEXTS, LABELS)


@pytest.mark.slow
def test_pairs_of_a_large_group_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 300 words, the 100 most frequent are compared with each other: 4,950 pairs; the representative with all."""
    words = [a + b for a, b in itertools.product(string.ascii_lowercase, repeat=2)][:300]
    frequencies = ClassFrequencies(("0", "1"), {word: (900 - i, 900) for i, word in enumerate(words)})
    sizes = []

    def p_values(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        sizes.append(len(first))
        return np.ones(len(first))

    monkeypatch.setattr("steadygaze.data.class_frequencies.exact_p_values", p_values)
    assert suspicious_pairs_in_groups([words], frequencies) == []
    suspicious_pairs_in_groups([[words[-1], *words[:-1]]], frequencies)
    assert sizes == [4_950 + 200, 4_950 + 299]


def test_a_word_without_synonyms_left_agrees_with_nobody() -> None:
    # "see" has a row without synonyms: only "picture" names it.  "view" has no row.
    table = {"see": [], "picture": ["see", "view"]}
    assert group_synonyms(table).groups.groups == (("picture", "view"),)
    # "never" is a negation, which the filter drops
    assert group_synonyms({"rarely": ["never"], "never": ["rarely"]}).groups.groups == ()


def test_training_warns_about_suspicious_pairs_and_does_not_merge_them() -> None:
    clf = TextClassifier("average", epochs=1, settings={"small_data": False}, synonym_groups=TABLE, device="cpu")
    with pytest.warns(SynonymWarning, match="2 pairs of synonyms .* are not merged: bad/good, film/movie"):
        clf.fit(TEXTS, LABELS)
    assert clf.stored_.tokenizer.synonym_groups == SynonymGroups((("good", "nice"),))
