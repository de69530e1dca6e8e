"""Where things lie, as bundle writes it down: a third party can find them, and learns nothing of this machine."""

from pathlib import Path

import pytest

from steadygaze.audit.loaded_audit import portable_path, portable_settings, restored_settings
from steadygaze.core.errors import UserError


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """work/ with models/m, data.csv and runs/bundle; elsewhere/ beside it."""
    for folder in ("work/models/m", "work/runs/bundle", "elsewhere/m"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "work" / "data.csv").write_text("text\n")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def test_a_path_is_seen_from_the_folder_of_the_evidence_and_else_is_a_name(work):
    assert (
        portable_path("models/m", work / "runs")
        == portable_path(str(work / "models" / "m"), work / "runs")
        == "../models/m"
    )
    assert portable_path("data.csv", work) == "./data.csv"
    assert portable_path("../elsewhere/m", work / "runs") == "./m"  # what is outside tells of this machine
    assert portable_path("models/m", work.parent / "elsewhere") == "./m"
    assert portable_path("../elsewhere/m", work.parent / "elsewhere") == "./m"


def test_settings_keep_paths_and_leave_names_alone(work):
    asked = {"model": "models/m", "data": "data.csv", "other_seeds": ("models/m", "org/name"), "synonyms": None, "k": 7}
    right = {**asked, "model": "../models/m", "data": "../data.csv", "other_seeds": ("../models/m", "org/name")}
    assert portable_settings(asked, work / "runs") == right


@pytest.mark.parametrize("name", ["data", "train"])
def test_a_corpus_is_no_folder_of_its_name_and_a_model_is_never_a_corpus(work, name):
    (work / "sst2").mkdir()
    for word in ("sst2", "biased=0.9:sst2", "planted-reviews:aspect=palate"):
        assert portable_settings({name: word}, work) == {name: word}
    assert portable_settings({name: "./sst2"}, work) == {name: "./sst2"}
    assert portable_settings({name: str(work / "sst2")}, work / "runs") == {name: "../sst2"}
    assert portable_settings({"model": "sst2"}, work) == {"model": "./sst2"}


def test_what_was_kept_is_found_from_the_evidence_and_from_where_we_work(work, monkeypatch):
    bundle = work / "runs" / "bundle"
    asked = portable_settings({"model": "models/m", "data": "planted-reviews", "train": "data.csv"}, bundle.parent)
    monkeypatch.chdir(work.parent)
    right = {"model": str(work / "models" / "m"), "data": "planted-reviews", "train": str(work / "data.csv")}
    assert restored_settings(asked, bundle) == right
    monkeypatch.chdir(work)
    assert restored_settings({"data": "./data.csv"}, bundle) == {"data": str(work / "data.csv")}


def test_what_is_not_there_any_more_is_said_with_the_places_and_what_to_pass(work):
    bundle = work / "runs" / "bundle"
    places = f"{work / 'runs' / 'gone'} nor {work / 'gone'}"
    for asked, option in (({"other_seeds": ["./gone"]}, "--other-seed MODEL"), ({"train": "./gone"}, "--train DATA")):
        with pytest.raises(UserError, match=f"no file exists at {places}; pass its new path with {option}"):
            restored_settings(asked, bundle)


def test_what_is_done_to_a_corpus_stays_before_its_path(work):
    for word in ("biased=0.9:data.csv", f"biased=0.9:{work / 'data.csv'}"):
        assert portable_settings({"data": word}, work / "runs") == {"data": "biased=0.9:../data.csv"}
    back = restored_settings({"data": "biased=0.9:../data.csv"}, work / "runs" / "bundle")
    assert back == {"data": f"biased=0.9:{work / 'data.csv'}"}
    assert restored_settings({"data": "biased=0.9:sst2"}, work / "runs") == {"data": "biased=0.9:sst2"}
