"""Groups of synonyms."""

import itertools
import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadygaze.core.errors import UserError
from steadygaze.data.synonym_groups import RULES, Rule, SynonymGroups, build_groups, fold_word, mutual_neighbors

WORDS = [a + b for a, b in itertools.product("abc", "xyz")]
TABLES = st.dictionaries(st.sampled_from(WORDS), st.lists(st.sampled_from(WORDS), max_size=6), max_size=9)


def test_a_word_joins_the_group_of_its_closest_mutual_neighbor() -> None:
    table = {"big": ["large"], "large": ["huge", "big"], "great": ["huge"], "huge": ["great", "large"]}
    # big starts a group, large joins it, great starts one; huge is a neighbor of great, and not of big
    assert build_groups(table, {"big": 4, "large": 3, "great": 2, "huge": 1}).groups == (
        ("big", "large"),
        ("great", "huge"),
    )
    # large starts a group, huge joins it by mutual neighborhood, big joins it, great has no representative left
    assert build_groups(table, {"large": 9, "huge": 8}).groups == (("large", "huge", "big"),)


def test_one_sided_synonyms_are_not_merged_unless_a_word_has_no_row() -> None:
    assert build_groups({"good": ["fine"], "fine": ["thin"], "thin": ["fine"]}, {"good": 9}).groups == (
        ("fine", "thin"),
    )
    assert build_groups({"good": ["fine", "nice"]}).groups == (("fine", "good"),)  # in the order of the alphabet
    assert build_groups({"good": ["fine", "nice"]}, {"good": 1}).groups == (("good", "fine", "nice"),)


@pytest.mark.parametrize(
    ("rule", "groups"),
    [
        ("star", (("aa", "bb", "cc", "dd"),)),
        ("half", (("aa", "bb", "cc"),)),  # dd is a neighbor of one of three
        ("clique", (("aa", "bb"),)),  # cc is not a neighbor of bb
    ],
)
def test_stricter_rules_require_more_of_the_members(rule: Rule, groups: tuple[tuple[str, ...], ...]) -> None:
    table = {"aa": ["bb", "cc", "dd"], "bb": ["aa"], "cc": ["aa"], "dd": ["aa"]}
    assert build_groups(table, {"aa": 4, "bb": 3, "cc": 2, "dd": 1}, rule).groups == groups


PAIRS = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)))


@given(TABLES, PAIRS, st.sampled_from(RULES))
def test_separate_pairs_are_in_different_groups(table: dict, pairs: list[tuple[str, str]], rule: Rule) -> None:
    groups = build_groups(table, rule=rule, separate_pairs=pairs)
    assert not any(set(pair) <= set(group) for pair in pairs for group in groups.groups if len(set(pair)) == 2)
    assert build_groups(table, rule=rule, separate_pairs=itertools.combinations(WORDS, 2)).groups == ()


@given(TABLES, st.dictionaries(st.sampled_from(WORDS), st.integers(0, 5)), st.sampled_from(RULES))
def test_groups_follow_their_rule_for_any_table(table: dict, frequency: dict, rule: Rule) -> None:
    groups = build_groups(table, frequency, rule)
    neighbors = mutual_neighbors(table)
    assert groups == build_groups(dict(reversed(table.items())), frequency, rule) or _has_duplicate_rows(table)
    for group in groups.groups:
        assert group[0] == min(group, key=lambda word: (-frequency.get(word, 0), word))
        if rule == "linked":
            continue
        for position, word in enumerate(group[1:], 1):
            assert group[0] in neighbors[word]
            shared = sum(other in neighbors[word] for other in group[:position])
            assert shared >= {"star": 1, "half": position / 2, "clique": position}[rule]
    assert all(word in neighbors[other] for word in neighbors for other in neighbors[word])
    assert all(word not in neighbors[word] for word in neighbors)


def test_linked_groups_are_merged_by_the_number_of_substitutions_they_keep() -> None:
    table = {
        "film": ["movie", "show"],
        "movie": ["film"],
        "show": ["display", "play", "film"],
        "display": ["show"],
        "play": ["show"],
    }
    frequency = {"film": 9, "show": 8, "movie": 3, "display": 2, "play": 1}
    assert build_groups(table, frequency).groups == (("film", "show", "movie"),)
    assert build_groups(table, frequency, "linked").groups == (("film", "show", "movie", "display", "play"),)
    # display and play are kept apart: show keeps 8/3 + 2 substitutions with display, 8/3 + 1 with play
    linked = build_groups(table, frequency, "linked", [("display", "play")])
    assert linked.groups == (("film", "show", "movie", "display"),)


@given(TABLES, st.dictionaries(st.sampled_from(WORDS), st.integers(0, 5)), PAIRS)
def test_linked_groups_unite_star_groups_until_no_pair_of_them_can_be_merged(
    table: dict, frequency: dict, pairs: list[tuple[str, str]]
) -> None:
    star = build_groups(table, frequency, "star", pairs)
    linked = build_groups(table, frequency, "linked", pairs)
    assert all(len({linked.representative(word) for word in group}) == 1 for group in star.groups)
    neighbors = mutual_neighbors(table)
    single = [(word,) for word in neighbors if word not in linked.representatives]
    for first, second in itertools.combinations([*linked.groups, *single], 2):
        links = sum(b in neighbors[a] for a in first for b in second)
        separate = any({a, b} == set(pair) for a in first for b in second for pair in pairs)
        assert separate or links < min(len(first), len(second))


def test_linked_groups_have_at_most_32_words() -> None:
    words = [a + b for a in "bcdfghjk" for b in "aeiou"]  # 40 words, each a neighbor of the next
    table = {word: [*words[max(0, i - 1) : i], *words[i + 1 : i + 2]] for i, word in enumerate(words)}
    sizes = sorted(len(group) for group in build_groups(table, rule="linked").groups)
    assert max(sizes) <= 32
    assert sum(sizes) == 40


def _has_duplicate_rows(table: dict) -> bool:
    """Words without a row take the order of the table's rows."""
    return bool({synonym for row in table.values() for synonym in row} - table.keys())


@given(TABLES)
def test_groups_survive_json(table: dict) -> None:
    groups = build_groups(table)
    loaded = SynonymGroups.from_json(groups.to_json())
    assert loaded == groups
    assert loaded.digest == groups.digest
    assert json.loads(groups.to_json())["groups"] == [list(group) for group in groups.groups]


def test_representative_and_members_ignore_case() -> None:
    groups = SynonymGroups((("movie", "film"), ("good", "fine")))
    assert groups.representative("FILM") == "movie"
    assert groups.members("Film") == groups.members("movie") == ("movie", "film")
    assert groups.representative("Bad") == "Bad"
    assert groups.members("Bad") == ("Bad",)


@pytest.mark.parametrize("word", ["a", "well-made", "o'clock", "b2b", "two words", "电影", "", "\u0301ab", "re", "www"])
def test_words_that_could_change_the_split_of_a_text_are_not_grouped(word: str) -> None:
    assert fold_word(word) is None
    with pytest.raises(UserError, match="cannot be in a group"):
        SynonymGroups((("good", word),))


def test_accents_are_composed_and_case_is_folded() -> None:
    assert fold_word("Cafe\u0301") == fold_word("CAFÉ") == "café"
    assert fold_word(string.ascii_uppercase) == string.ascii_lowercase


@pytest.mark.parametrize(
    ("groups", "spellings", "message"),
    [
        ((("good", "fine"), ("fine", "thin")), (), "'fine' is in two groups"),
        ((("good",),), (), "at least two words"),
        ((("Good", "fine"),), (), "'Good' cannot be in a group"),
        ((), ("Movie",), "'Movie' cannot be in a group"),
        ((), ("two words",), "'two words' cannot be in a group"),
        ((), ("movie", "movie"), "'movie' is twice in the spellings"),
    ],
)
def test_wrong_groups_are_refused(groups: tuple, spellings: tuple, message: str) -> None:
    with pytest.raises(UserError, match=message):
        SynonymGroups(groups, spellings)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        '{"format": "steadygaze synonym groups", "groups": [[1, "b"]]}',
        '{"groups": [["a", "b"]]}',
        '{"format": "steadygaze synonym groups", "groups": {"a": "b"}}',
        *(f'{{"format": "steadygaze synonym groups", "groups": [], "spellings": {s}}}' for s in ('"a"', "[1]", "null")),
    ],
)
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"file\.json has no synonym groups"):
        SynonymGroups.from_json(text, "file.json")


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(UserError, match="group rule"):
        build_groups({"good": ["fine"]}, rule="ring")  # type: ignore[arg-type]
