"""Where things lie, as bundle writes it down: a third party can find them, and learns nothing of this machine."""

from pathlib import Path

import pytest

from steadygaze.bundle.loaded_audit import portable_path, portable_settings, restored_settings
from steadygaze.core.errors import UserError


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """work/ with models/m, data.csv and runs/bundle; elsewhere/ beside it."""
    for folder in ("work/models/m", "work/runs/bundle", "elsewhere/m"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "work" / "data.csv").write_text("text\n")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def test_a_path_is_relative_to_the_folder_of_the_bundle_or_a_name(work):
    assert (
        portable_path("models/m", work / "runs")
        == portable_path(str(work / "models" / "m"), work / "runs")
        == "../models/m"
    )
    assert portable_path("data.csv", work) == "./data.csv"
    assert portable_path("../elsewhere/m", work / "runs") == "./m"  # a path outside would show folders of this machine
    assert portable_path("models/m", work.parent / "elsewhere") == "./m"
    assert portable_path("../elsewhere/m", work.parent / "elsewhere") == "./m"


def test_settings_keep_paths_and_leave_names_alone(work):
    settings = {
        "model": "models/m",
        "data": "data.csv",
        "other_seeds": ("models/m", "org/name"),
        "synonyms": None,
        "k": 7,
    }
    right = {**settings, "model": "../models/m", "data": "../data.csv", "other_seeds": ("../models/m", "org/name")}
    assert portable_settings(settings, work / "runs") == right


@pytest.mark.parametrize("name", ["data", "train"])
def test_a_corpus_is_no_folder_of_its_name_and_a_model_is_never_a_corpus(work, name):
    (work / "sst2").mkdir()
    for word in ("sst2", "biased=0.9:sst2", "planted-reviews:aspect=palate"):
        assert portable_settings({name: word}, work) == {name: word}
    assert portable_settings({name: "./sst2"}, work) == {name: "./sst2"}
    assert portable_settings({name: str(work / "sst2")}, work / "runs") == {name: "../sst2"}
    assert portable_settings({"model": "sst2"}, work) == {"model": "./sst2"}


def test_stored_paths_are_resolved_from_the_bundle_and_from_the_working_folder(work, monkeypatch):
    bundle = work / "runs" / "bundle"
    settings = portable_settings({"model": "models/m", "data": "planted-reviews", "train": "data.csv"}, bundle.parent)
    monkeypatch.chdir(work.parent)
    right = {"model": str(work / "models" / "m"), "data": "planted-reviews", "train": str(work / "data.csv")}
    assert restored_settings(settings, bundle) == right
    monkeypatch.chdir(work)
    assert restored_settings({"data": "./data.csv"}, bundle) == {"data": str(work / "data.csv")}


def test_files_that_no_longer_exist_are_one_error_with_the_command(work):
    bundle = work / "runs" / "bundle"
    settings = {"model": "./gone", "data": "biased=0.9:../old.csv", "other_seeds": ["./other", "../data.csv"]}
    with pytest.raises(UserError) as raised:
        restored_settings(settings, bundle)
    assert str(raised.value) == (
        "not found next to the bundle, nor in the working folder: model ./gone, data biased=0.9:../old.csv, "
        "other_seeds ./other.  Put the path in place of FOLDER:  steadygaze audit FOLDER/gone "
        f"--data biased=0.9:FOLDER/old.csv --other-seed FOLDER/other --other-seed ../data.csv --verify {bundle}"
    )


def test_the_command_of_that_error_keeps_the_paths_that_were_passed(work):
    passed = {"model": str(work / "data.csv")}
    with pytest.raises(UserError, match=r": train ./gone\.  Put the path") as raised:
        restored_settings({**passed, "train": "./gone", "data": "sst2"}, work / "runs" / "bundle", passed)
    command = f"steadygaze audit {work / 'data.csv'} --train FOLDER/gone --verify {work / 'runs' / 'bundle'}"
    assert str(raised.value).endswith(command)


def test_what_is_done_to_a_corpus_stays_before_its_path(work):
    for word in ("biased=0.9:data.csv", f"biased=0.9:{work / 'data.csv'}"):
        assert portable_settings({"data": word}, work / "runs") == {"data": "biased=0.9:../data.csv"}
    back = restored_settings({"data": "biased=0.9:../data.csv"}, work / "runs" / "bundle")
    assert back == {"data": f"biased=0.9:{work / 'data.csv'}"}
    assert restored_settings({"data": "biased=0.9:sst2"}, work / "runs") == {"data": "biased=0.9:sst2"}
