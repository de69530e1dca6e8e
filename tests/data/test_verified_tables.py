"""Verified tables: the filters together, and the file that says so."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from steadygaze.core.errors import UserError
from steadygaze.data.context_filter import OCCURRENCES, WINDOW, Context, occurrences, pair_similarity
from steadygaze.data.substitutable_pairs import FUNCTION_WORDS, negates, substitutable_pairs
from steadygaze.data.synonym_tables import LISTS, SynonymTable, clean_table, read_synonyms
from steadygaze.data.verified_tables import Verification, read_verification, verified_rows, verified_text

TEXTS = ["A good FILM.", "the film was fine", "a fine movie", "good skin", "ein guter Streifen", "fine, good movie"]
VERIFICATION = Verification("abc", 0.8, "def", ("table.jsonl",))


def cosine(contexts: Sequence[Context]) -> np.ndarray:
    """1 for movie, 0.25 for skin in capitals, 0.5 for everything else."""
    values = {"movie": 1.0, "MOVIE": 1.0, "SKIN": 0.25}
    return np.array([values.get(context.substitute, 0.5) for context in contexts])


def test_similarity_is_the_mean_over_occurrences_with_the_case_of_the_word() -> None:
    similarity = pair_similarity({"film": ["movie", "skin"], "absent": ["gone"]}, TEXTS, cosine)
    assert similarity == {("film", "movie"): 1.0, ("film", "skin"): (0.25 + 0.5) / 2}


def test_contexts_are_windows_of_some_texts() -> None:
    words = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(60)]
    text = " ".join([*words[:30], "film", *words[30:], "film"])
    found = occurrences([text] * 11 + ["other"], ["film"])["film"]
    assert len(found) == OCCURRENCES
    context, start, end = found[0]
    assert context[start:end] == "film"
    assert context.split() == [*words[30 - WINDOW : 30], "film", *words[30 : 30 + WINDOW]]


def test_a_source_of_another_language_passes_the_contextual_filter_alone(tmp_path: Path) -> None:
    source = tmp_path / "table.csv"
    source.write_text("film,movie,fine,gone\nguter,good\nabsent,movie")
    frequency = {"film": 2, "movie": 3, "fine": 3, "guter": 1, "good": 3}
    verified = verified_rows([source], TEXTS, frequency, cosine, threshold=0.8)
    assert (verified.listed, verified.others, verified.candidates) == ({}, {"film": ["movie"]}, 3)
    # film: movie, fine; guter: good.  gone is in no text


def test_listed_pairs_need_only_occur_and_their_words_have_no_others(tmp_path: Path) -> None:
    source = tmp_path / "table.csv"
    source.write_text("film,fine\nstreifen,movie,film\nalthough,fine")
    frequency = {
        "film": 9,
        "movie": 3,
        "fine": 3,
        "streifen": 3,
        "although": 3,
        "though": 1,
        "almost": 2,
        "because": 2,
        "bc": 2,
    }
    verified = verified_rows(["everyday", source], ["streifen"], frequency, cosine, threshold=0.9)
    assert verified.listed == {"film": ["movie"], "movie": ["film"], "although": ["though"]}  # a function word
    assert (verified.others, verified.candidates) == ({"streifen": ["movie"]}, 2)
    assert verified_rows(["chat"], [], frequency, cosine).listed == {"bc": ["because"], "because": ["bc"]}


@pytest.mark.parametrize("name", sorted(LISTS))
def test_lists_have_pairs_that_may_be_substituted(name: str) -> None:
    rows = read_synonyms(LISTS[name])
    assert clean_table(rows) == SynonymTable(rows)  # single words in lower case, none its own synonym
    assert all(len(row) == len({*row}) for row in rows.values())
    for word, row in rows.items():
        for synonym in row:
            assert not negates(word, synonym), (word, synonym)
            assert not negates(synonym, word), (word, synonym)


def test_the_content_words_of_a_list_have_one_inflection() -> None:
    rows = read_synonyms(LISTS["everyday"])
    content = {word: [other for other in row if not {word, other} & FUNCTION_WORDS] for word, row in rows.items()}
    dropped = {
        (word, other)
        for word, row in content.items()
        for other in {*row} - {*substitutable_pairs(content).get(word, ())}
    }
    assert dropped == {("champion", "champ")}  # -ion is no suffix of champ


def test_a_verified_table_is_read_as_a_table_and_as_verified(tmp_path: Path) -> None:
    file = tmp_path / "table.jsonl"
    file.write_text(verified_text({"film": ["movie"], "empty": []}, VERIFICATION))
    assert read_synonyms(file) == {"film": ["movie"]}
    assert read_verification(file) == VERIFICATION


def test_other_tables_are_unverified(tmp_path: Path) -> None:
    file = tmp_path / "table.jsonl"
    file.write_text('{"word": "verified", "synonyms": ["checked"]}\n')
    assert read_verification(file) is None
    assert read_synonyms(file) == {"verified": ["checked"]}
    assert read_verification(tmp_path) is None
    assert read_verification(tmp_path / "absent.jsonl") is None


def test_an_edited_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "table.jsonl"
    content = verified_text({"film": ["movie"]}, VERIFICATION)
    file.write_text(content.replace("movie", "skin"))
    with pytest.raises(UserError, match="was edited after it was verified: remove the first line"):
        read_verification(file)
    header = json.loads(content.splitlines()[0])
    header["verified"]["threshold"] = "high"
    for damaged in ({"verified": {"rows": 1}}, {"verified": [1]}, header):
        file.write_text(json.dumps(damaged) + "\n" + content.partition("\n")[2])
        with pytest.raises(UserError, match="does not describe a verified table"):
            read_verification(file)
