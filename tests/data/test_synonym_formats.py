"""Synonym tables in the formats of other projects."""

import json
from pathlib import Path

import pytest

from steadygaze.core.errors import UserError
from steadygaze.data.synonym_formats import DEBIAN_FOLDER, table_files, wordnet_folder
from steadygaze.data.synonym_tables import read_synonyms

LICENSE = "  1 This software and database is being provided to you\n"
# offset, lexicographer file, type, number of words in hexadecimal, word and lexical id …, pointers, gloss
NOUNS = f"""{LICENSE}06613686 10 n 05 movie 0 film 0 picture 0 moving_picture 0 Flick 1 001 @ 06619065 n 0000 | a story
00000002 03 n 02 film 0 cinema 0 000 | a second sense
00000003 03 n 01 alone 0 000 | no synonym
00000004 03 n 02 child 0 kid 0 000 | a human
"""
NOUN_INDEX = """  1 license
film n 2 1 @ 2 1 06613686 00000002
movie n 1 1 @ 1 1 06613686
picture n 1 1 @ 1 1 06613686
moving_picture n 1 0 1 0 06613686
flick n 1 0 1 0 06613686
cinema n 1 1 @ 1 1 00000002
alone n 1 0 1 0 00000003
child n 1 0 1 0 00000004
kid n 1 0 1 0 00000004
"""
ADJECTIVES = "00000005 00 s 02 good(p) 0 fine 0 000 | well\n"
ADJECTIVE_INDEX = "good a 1 0 1 0 00000005\nfine a 1 0 1 0 00000005\n"


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    folder = tmp_path / "wordnet"
    folder.mkdir()
    files = {"noun": (NOUNS, NOUN_INDEX), "adj": (ADJECTIVES, ADJECTIVE_INDEX), "adv": ("", ""), "verb": ("", "")}
    for part, (data, index) in files.items():
        (folder / f"data.{part}").write_text(data)
        (folder / f"index.{part}").write_text(index)
    (folder / "noun.exc").write_text("children child\n")
    return folder


def test_wordnet_gives_the_synonyms_of_the_first_sense(wordnet: Path) -> None:
    assert read_synonyms(wordnet) == {
        "film": ["movie", "picture", "moving picture"],
        "movie": ["film", "picture", "moving picture"],
        "picture": ["movie", "film", "moving picture"],
        "moving picture": ["movie", "film", "picture"],
        "cinema": ["film"],
        "alone": [],
        "child": ["kid"],
        "kid": ["child"],
        "good": ["fine"],
        "fine": ["good"],
    }


def test_pairs_of_wordnet_are_inflected_alike(wordnet: Path) -> None:
    words = {"films", "movies", "children", "kids", "finer", "goods", "cinemas", "filmed"}
    table = read_synonyms(wordnet, words=words)
    assert table["films"] == ["movies"]
    assert table["movies"] == ["films"]
    assert table["cinemas"] == ["films"]
    assert table["children"] == ["kids"]
    assert table["kids"] == ["children"]
    assert not table.keys() & {"goods", "finer", "filmed"}  # an adjective has no plural, and "gooder" is not a word


def test_a_damaged_wordnet_folder_is_refused(wordnet: Path) -> None:
    (wordnet / "index.noun").write_text("film n 1 1 @ 1 1 99999999\n")
    with pytest.raises(UserError, match=r"index\.noun has the synset 99999999 of 'film', which data\.noun lacks"):
        read_synonyms(wordnet)
    (wordnet / "index.noun").write_text(NOUN_INDEX)
    (wordnet / "index.verb").unlink()
    with pytest.raises(UserError, match=r"has no data\.verb or index\.verb"):
        read_synonyms(wordnet)
    (wordnet / "data.adj").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"data\.adj cannot be read: it is not UTF-8"):
        read_synonyms(wordnet)
    (wordnet / "data.adj").write_text("00000005 00 s zz good\n")
    with pytest.raises(UserError, match="wordnet is not a synonym table"):
        read_synonyms(wordnet)


def test_the_files_of_a_folder_determine_its_table(wordnet: Path) -> None:
    assert {"data.noun", "index.noun"} <= {file.name for file in table_files(wordnet)}
    assert table_files(wordnet / "noun.exc") == (wordnet / "noun.exc",)


@pytest.mark.slow
@pytest.mark.skipif(not (DEBIAN_FOLDER / "data.noun").is_file(), reason="apt install wordnet-base")
def test_the_installed_wordnet_is_read() -> None:
    table = read_synonyms(wordnet_folder(), words={"movies", "films", "children", "kids"})
    assert {"movie", "picture"} <= set(table["film"])
    assert "films" in table["movies"]
    assert {"kids"} <= set(table["children"])
    assert "big" in table["large"]
    assert "large" in table["big"]
    assert len(table) > 60_000


MYTHES = """UTF-8
film|2
(noun)|movie|picture|moving picture|show (generic term)
(verb)|shoot|take|record (generic term)
good|2
(adj)|fine|bad (antonym)|Bon
(adj)|full
"""


def test_a_mythes_thesaurus_gives_the_first_sense_without_marked_terms(tmp_path: Path) -> None:
    file = tmp_path / "th.dat"
    file.write_text(MYTHES)
    table = {"film": ["movie", "picture", "moving picture", "shoot", "take"], "good": ["fine"]}
    assert read_synonyms(file) == table
    file.write_bytes(MYTHES.replace("UTF-8", "ISO8859-1").replace("fine", "fée").encode("latin-1"))
    assert read_synonyms(file) == {**table, "good": ["fée"]}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"UTF-9\nfilm|1\n(noun)|movie\n", "first line must name its encoding"),
        (b"UTF-8\nfilm|1\n(noun)|\xff\n", "first line must name its encoding"),
        (b"\xff\n", "first line must name its encoding"),
        (b"", "contains no synonyms|first line must name its encoding"),
        (b"UTF-8\nfilm movie\n", r"found 'film movie'; it needs a line word\|number"),
    ],
)
def test_a_thesaurus_of_another_form_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "th.dat").write_bytes(content)
    with pytest.raises(UserError, match=problem):
        read_synonyms(tmp_path / "th.dat")


def test_rows_of_csv_and_tsv_are_a_word_and_its_synonyms(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('word,synonyms\ngood,fine,"nice"\n\ngood,great,\nfilm, movie\n')
    (tmp_path / "a.tsv").write_text("good\tfine\tnice\ngood\tgreat\nfilm\tmovie")
    table = {"good": ["fine", "nice", "great"], "film": ["movie"]}
    assert read_synonyms(tmp_path / "a.csv") == read_synonyms(tmp_path / "a.tsv") == table
    (tmp_path / "b.csv").write_text("good,fine\nfilm\n")
    with pytest.raises(UserError, match=r"row 2 is \['film'\]; it needs a word and its synonyms"):
        read_synonyms(tmp_path / "b.csv")
    (tmp_path / "b.csv").write_bytes(b"caf\xe9,bar\n")
    with pytest.raises(UserError, match="is not UTF-8"):
        read_synonyms(tmp_path / "b.csv")


def test_counter_fitted_neighbors_may_have_distances(tmp_path: Path) -> None:
    (tmp_path / "n.json").write_text(json.dumps({"good": [["fine", 0.2], ["nice", 0.3]], "film": ["movie"]}))
    assert read_synonyms(tmp_path / "n.json") == {"good": ["fine", "nice"], "film": ["movie"]}
    (tmp_path / "n.json").write_text(json.dumps({"good": [[0.2, "fine"]]}))
    with pytest.raises(UserError, match="some word is not a string"):
        read_synonyms(tmp_path / "n.json")


def test_a_file_of_an_unknown_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_text("x")
    with pytest.raises(UserError, match=r"its name ends in '\.xlsx', which is not one of \.jsonl"):
        read_synonyms(tmp_path / "a.xlsx")
