"""The commands of synonym tables."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from commands import run
from steadygaze.core.types import OnProgress
from steadygaze.data.context_filter import Context
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.data.synonym_tables import read_synonyms
from steadygaze.data.verified_tables import read_verification

ROWS = ["good,nice,bad", "bad,good", "nice,good", "film,movie,moving picture,film", "movie,film"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("\n".join(ROWS))
    texts = [f"a {('bad', 'good')[i % 2]} {('film', 'movie')[i // 2 % 2]} {i},{i % 2}" for i in range(40)]
    (tmp_path / "reviews.csv").write_text("\n".join(["text,label", *texts]))
    return tmp_path


def test_build_writes_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "synonyms", "build", "table.csv", "--out", "table.jsonl").out
    assert "table: 6 pairs of 5 words" in out
    assert "left out: 1 pairs (several words), 1 pairs (synonym of itself)" in out
    assert read_synonyms(folder / "table.jsonl")["good"] == ["nice", "bad"]
    again = run(capsys, "synonyms", "build", "table.csv", "--out", "table.csv")
    assert again.code == 2
    assert "table.csv" in again.err


def test_build_leaves_out_words_that_define_classes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["synonyms", "build", "table.csv", "--data", "reviews.csv", "--out", "groups.json"]
    out = run(capsys, *command).out
    assert "suspicious pairs: 1 (left out)" in out
    assert "bad (0 20, 1 0) and good (0 0, 1 20): p = 1.5e-11" in out
    assert SynonymGroups.from_json((folder / "groups.json").read_text()).groups == (("film", "movie"), ("good", "nice"))
    result = json.loads(run(capsys, *command, "--replace", "--keep-suspicious", "--json").out)
    assert result["groups"] == 2
    assert SynonymGroups.from_json((folder / "groups.json").read_text()).members("bad") == ("bad", "good")
    assert "groups.txt must end in .jsonl" in run(capsys, *command[:-1], "groups.txt").err
    assert "unknown group rule" in run(capsys, *command, "--replace", "--rule", "ring").err


def test_build_groups_inflected_forms_and_typos(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("noun", "verb", "adj", "adv"):
        words = ["film", "movie"] if part == "noun" else []
        (folder / f"index.{part}").write_text("".join(f"{word} n 1 0 1 0 00000001  \n" for word in words))
    monkeypatch.setattr("steadygaze.data.synonym_formats.wordnet_folder", lambda: folder)
    command = ["synonyms", "build", "--data", "reviews.csv", "--inflection", "--typos", "--out", "groups.json"]
    out = run(capsys, *command).out
    assert "groups (star): 2 groups of 4 words" in out
    assert "typos: 4 words are recognized by their typos" in out
    groups = SynonymGroups.from_json((folder / "groups.json").read_text())
    assert groups.groups == (("film", "films"), ("movie", "movies"))
    assert (groups.representative("Moviess"), groups.representative("fiilm")) == ("Moviess", "film")
    run(capsys, *command, "table.csv", "--replace")
    groups = SynonymGroups.from_json((folder / "groups.json").read_text())
    assert set(groups.members("movies")) == {"film", "films", "movie", "movies"}
    assert groups.representative("moive") == "film"


class States:
    """An encoder to which only film and movie are alike."""

    digest = "abc"

    def __init__(self, folder: Path, on_progress: OnProgress) -> None:
        assert (folder / "config.json").exists()
        on_progress("comparing", 0, 1)

    def similarity(self, contexts: Sequence[Context]) -> np.ndarray:
        return np.array(
            [float({item.text[item.start : item.end], item.substitute} == {"film", "movie"}) for item in contexts]
        )


def test_build_verifies_a_table(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steadygaze.models.encoders.word_states.WordStates", States)
    (folder / "encoder").mkdir()
    (folder / "encoder" / "config.json").write_text("{}")
    command = ["synonyms", "build", "table.csv", "--data", "reviews.csv", "--verify", "encoder", "--out", "table.jsonl"]
    out = run(capsys, *command).out
    assert "verified: 0 pairs of lists; 2 of 4 others, mean cosine 0.85 or more" in out
    assert "words with a verified substitute: 0 % 0, 100 % 1, 0 % 2, 0 % 3 or more (of 40 texts)" in out
    assert read_synonyms(folder / "table.jsonl") == {"film": ["movie"], "movie": ["film"]}
    verification = read_verification(folder / "table.jsonl")
    assert verification is not None
    assert (verification.encoder, verification.sources) == ("abc", ("table.csv",))
    result = json.loads(run(capsys, *command, "--replace", "--json").out)["verified"]
    monkeypatch.setattr(States, "similarity", lambda states, contexts: np.zeros(len(contexts)))
    assert "none of 4 pairs was verified" in run(capsys, *command, "--replace").err
    texts = {"0": 0, "1": 40, "2": 0, "3": 0}
    assert result == {"listed": 0, "others": 2, "candidates": 4, "threshold": 0.85, "texts": texts}
    command[2] = "everyday"
    assert "verified: 2 pairs of lists; 0 of 0 others" in run(capsys, *command, "--replace").out
    assert read_synonyms(folder / "table.jsonl") == {"film": ["movie"], "movie": ["film"]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["table.csv", "--out", "table.jsonl", "--verify", "minilm"], "--verify needs a synonym source and training"),
        (["table.csv", "--data", "reviews.csv", "--out", "g.json", "--verify", "minilm"], "writes a table"),
        (["table.csv", "--data", "reviews.csv", "--out", "t.jsonl", "--verify", "hub/name"], "no such folder"),
        (["--out", "groups.json"], "pass a synonym source, --inflection or --typos"),
        (["--typos", "--out", "groups.json"], "need training texts"),
        (["--inflection", "--data", "reviews.csv", "--out", "table.jsonl"], "write groups"),
    ],
)
def test_incomplete_options_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    result = run(capsys, "synonyms", "build", *options)
    assert result.code == 2
    assert message in result.err


def test_show_prints_synonyms_and_group(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "synonyms", "show", "table.csv", "Movie", "zebra").out.splitlines() == [
        "Movie: film",
        "Movie: group of film, movie",
        "zebra: no synonyms",
        "zebra: in no group",
    ]
    (folder / "groups.json").write_text(SynonymGroups((("film", "movie"),)).to_json())
    rows = json.loads(run(capsys, "synonyms", "show", "groups.json", "movie", "--json").out)
    assert rows == [{"word": "movie", "synonyms": [], "group": ["film", "movie"]}]


def test_check_reports_coverage_and_suspicious_pairs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(run(capsys, "synonyms", "check", "table.csv", "--data", "reviews.csv", "--json").out)
    assert [(pair["word"], pair["synonym"]) for pair in result["suspicious"]] == [("bad", "good")]
    # of "a", good or bad, film or movie, and a number
    assert result["coverage"]["words_with_synonym"] == 4
    assert result["coverage"]["share"] == 0.5
    (folder / "groups.json").write_text(SynonymGroups((("good", "bad"),)).to_json())
    out = run(capsys, "synonyms", "check", "groups.json", "--data", "reviews.csv").out
    assert "coverage: 25.0 % of the words in the texts, 2 of 6 different words" in out
    assert "suspicious pairs: 1 (in the groups)" in out
    (folder / "groups.json").write_text(SynonymGroups((("tremendous", "good", "bad"),)).to_json())
    result = json.loads(run(capsys, "synonyms", "check", "groups.json", "--data", "reviews.csv", "--json").out)
    assert [(pair["word"], pair["synonym"]) for pair in result["suspicious"]] == [("bad", "good")]


def test_a_table_of_another_language_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "german.csv").write_text("gut,fein\n")
    error = run(capsys, "synonyms", "check", "german.csv", "--data", "reviews.csv").err
    assert "no word of the corpus has a synonym in the table" in error
    (folder / "latin.csv").write_bytes("schön,hübsch\n".encode("latin-1"))
    assert "it is not UTF-8" in run(capsys, "synonyms", "show", "latin.csv", "schön").err


def test_train_takes_groups(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "synonyms", "build", "table.csv", "--data", "reviews.csv", "--out", "groups.json")
    options = ["--encoder", "average", "--epochs", "1", "--json", "--out", "model"]
    result = json.loads(run(capsys, "train", "reviews.csv", "--synonym-groups", "groups.json", *options).out)
    assert result["synonym_groups"].startswith("2 groups of 4 words, SHA-256 ")
