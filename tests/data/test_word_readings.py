"""Readings of word forms, on a small database with counts."""

from pathlib import Path

import pytest

from steadygaze.core.errors import UserError
from steadygaze.data.word_readings import likely_synonyms, shared_readings

DATA = {
    "noun": [("01", "film Movie_star movie"), ("02", "film skin"), ("03", "wit card"), ("04", "Paris paris_green")],
    "verb": [("11", "start begin"), ("12", "tease card"), ("13", "film shoot")],
    "adj": [],
    "adv": [],
}
SENSES = {
    "noun": {"film": "01 02", "movie": "01", "skin": "02", "wit": "03", "card": "03", "paris": "04"},
    "verb": {"start": "11", "begin": "11", "tease": "12", "card": "12", "film": "13", "shoot": "13"},
    "adj": {},
    "adv": {},
}
COUNTS = "film%1:10:00:: 1 6\nfilm%1:06:00:: 2 2\nfilm%2:36:00:: 1 1\nmovie%1:10:00:: 1 5\ncard%1:06:00:: 1 9\n"


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    for part, synsets in DATA.items():
        lines = (
            f"{offset} 00 n {len(words.split()):02x} {' '.join(f'{word} 0' for word in words.split())} 000 | gloss"
            for offset, words in synsets
        )
        (tmp_path / f"data.{part}").write_text("  license\n" + "\n".join(lines) + "\n")
        index = (f"{word} x {len(senses.split())} 0 0 0 {senses}\n" for word, senses in SENSES[part].items())
        (tmp_path / f"index.{part}").write_text("".join(index))
    (tmp_path / "verb.exc").write_text("began begin\nbegun begin\nshot shoot\n")
    (tmp_path / "cntlist.rev").write_text(COUNTS)
    return tmp_path


def test_shares_are_smoothed_counts_over_all_parts_of_speech(wordnet: Path) -> None:
    pairs = shared_readings(wordnet, {"film", "movie", "skin", "card", "wit", "tease"})
    # film: nouns 6 + 1/2 and 2 + 1/4, verb 1 + 1/2
    total = 6.5 + 2.25 + 1.5
    assert (pairs["film", "movie"].word, pairs["film", "movie"].synonym) == pytest.approx((6.5 / total, 1.0))
    assert (pairs["film", "skin"].word, pairs["film", "skin"].synonym) == pytest.approx((2.25 / total, 1.0))
    assert pairs["card", "tease"].word == pytest.approx(0.5 / 10.0)
    assert pairs["tease", "card"].synonym == pytest.approx(0.5 / 10.0)
    assert ("skin", "movie") not in pairs


def test_words_share_a_reading_in_the_same_inflection_only(wordnet: Path) -> None:
    pairs = shared_readings(wordnet, {"films", "movies", "movie", "starts", "begins", "begin", "filmed", "shot"})
    assert {pair for pair in pairs if pair[0] < pair[1]} == {
        ("films", "movies"),
        ("begins", "starts"),
        ("filmed", "shot"),
    }
    # films: plural of both noun senses, or the verb
    assert pairs["films", "movies"].word == pytest.approx(6.5 / 10.25)


def test_past_forms_of_unknown_tense_and_names_have_no_synonyms(wordnet: Path) -> None:
    assert not shared_readings(wordnet, {"began", "begun", "started", "paris"})


def test_both_words_must_be_likely_and_the_substitute_frequent(wordnet: Path) -> None:
    words = {"film": 5, "movie": 4, "skin": 9, "card": 9, "tease": 9}
    pairs = shared_readings(wordnet, words)
    assert likely_synonyms(pairs, words, share=0.3, texts=3) == {"film": ["movie"], "movie": ["film"]}
    assert likely_synonyms(pairs, words, share=0.3, texts=5) == {"movie": ["film"]}
    assert likely_synonyms(pairs, words, share=0.2, texts=3)["film"] == ["movie", "skin"]


def test_a_database_without_counts_is_refused(wordnet: Path) -> None:
    (wordnet / "cntlist.rev").write_text("film 1\n")
    with pytest.raises(UserError, match="has the line 'film 1'"):
        shared_readings(wordnet, {"film"})
    (wordnet / "cntlist.rev").unlink()
    with pytest.raises(UserError, match=r"has no cntlist\.rev"):
        shared_readings(wordnet, {"film"})
