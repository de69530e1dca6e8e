"""Inflected forms by WordNet."""

from pathlib import Path

import pytest

from steadygaze.data.class_frequencies import class_frequencies
from steadygaze.data.lemmas import inflected_forms, regular_forms
from steadygaze.data.synonym_grouping import group_inflected_synonyms, group_inflections

INDEX = {
    "noun": ["film", "seed", "leaf", "child", "box", "movie"],
    "verb": ["film", "see", "seed", "leave", "stop", "give", "agree", "be"],
    "adj": ["boring", "funny", "large", "unfathomable"],
    "adv": ["well"],
}
EXCEPTIONS = {
    "noun": ["leaves leaf", "children child"],
    "verb": ["saw see", "seen see", "stopped stop", "stopping stop", "gave give", "left leave", "was be"],
}


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    for part, words in INDEX.items():
        license_line = "  1 This software and database is being provided to you\n"
        lines = [f"{word} {part[0]} 1 0 1 0 00000001  \n" for word in words]
        (tmp_path / f"index.{part}").write_text(license_line + "".join(lines))
        (tmp_path / f"{part}.exc").write_text("".join(f"{line}\n" for line in EXCEPTIONS.get(part, [])))
    return tmp_path


@pytest.mark.parametrize(
    ("lemma", "part", "irregular", "forms"),
    [
        ("film", "verb", [], ["films", "filmed", "filming"]),
        ("love", "verb", [], ["loves", "loved", "loving"]),
        ("agree", "verb", [], ["agrees", "agreed", "agreeing"]),
        ("play", "verb", [], ["plays", "played", "playing"]),
        ("watch", "verb", [], ["watches", "watched", "watching"]),
        ("stop", "verb", ["stopped", "stopping"], ["stops"]),
        ("city", "noun", [], ["cities"]),
        ("child", "noun", ["children"], []),
        ("funny", "adj", [], ["funnier", "funniest"]),
        ("large", "adj", [], ["larger", "largest"]),
        ("unfathomable", "adj", [], []),
        ("well", "adv", [], []),
    ],
)
def test_regular_forms_are_spelled_by_the_rules(lemma: str, part: str, irregular: list[str], forms: list[str]) -> None:
    assert regular_forms(lemma, part, irregular) == forms


def test_forms_belong_to_the_most_frequent_lemma_and_entries_to_themselves(wordnet: Path) -> None:
    frequency = {"films": 3, "see": 9, "seed": 2, "leave": 5, "leaf": 1, "leaves": 4, "boring": 2, "was": 9}
    forms = inflected_forms(frequency, wordnet)
    assert forms["film"] == ["filmed", "filming", "films"]  # the lemma itself does not occur
    assert "seed" not in forms["see"]
    assert {"saw", "seen", "sees", "seeing"} == set(forms["see"])
    assert "leaves" in forms["leave"]
    assert "leaf" not in forms  # its only form is taken
    assert "boring" not in forms
    assert "be" not in forms  # a function word
    assert "give" not in forms  # no form occurs


def test_forms_of_a_lemma_share_a_group_unless_their_classes_differ(wordnet: Path) -> None:
    texts = ["films seen"] * 9 + ["film leaves"] * 9 + ["leave filmed"]
    same = group_inflections(class_frequencies(texts, [0, 1] * 9 + [0]), wordnet)
    assert same.suspicious == []
    assert set(same.groups.members("Film")) == {"film", "films", "filmed", "filming"}
    assert same.groups.representative("filming") == "film"  # the most frequent, then by alphabet
    distance = group_inflections(class_frequencies(texts, [0] * 9 + [1] * 9 + [0]), wordnet)
    assert [(pair.word, pair.synonym) for pair in distance.suspicious] == [("film", "films")]
    assert distance.groups.representative("film") != distance.groups.representative("films")


def test_synonyms_are_grouped_after_inflections(wordnet: Path) -> None:
    frequencies = class_frequencies(["film movie", "films", "box", "film boxes"], [0, 1, 0, 1])
    inflections = group_inflections(frequencies, wordnet)
    groups = group_inflected_synonyms({"movies": ["films"], "films": ["movies"]}, inflections, frequencies).groups
    assert set(groups.members("films")) == {"film", "films", "filmed", "filming", "movie", "movies"}
    assert groups.representative("movie") == "film"
    assert groups.representative("boxes") == groups.representative("box")
