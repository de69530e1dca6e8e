"""Saving replaces a model of ours whole or not at all, and nothing else ever."""

from pathlib import Path

import pytest

import commands
from disk import disk_limit
from estimator.model_folder.compare import assert_same, contents
from estimator.tiny import PAIRS, TEXTS, fitted, fitted_pair, write_csv
from steadygaze.adapters.load_and_explain import load
from steadygaze.core import tensor_files
from steadygaze.core.errors import UserError


@pytest.mark.parametrize(
    "config", [None, "not JSON", '["steadygaze"]', '"steadygaze"', '{"model_type": "bert"}', "[" * 100_000]
)
def test_a_folder_that_is_not_ours_is_left_alone(tmp_path, config):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    if config is not None:
        (folder / "config.json").write_text(config)
    before = contents(folder)
    with pytest.raises(UserError, match="work exists and is not a steadygaze model; choose another folder"):
        fitted().save(folder)
    assert contents(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["work"]


@pytest.mark.slow
def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "model").write_text("a file")
    with pytest.raises(UserError, match="model is a file"):
        fitted().save(tmp_path / "model")
    with pytest.raises(UserError, match="cannot be written"):
        fitted().save(tmp_path / "model" / "inside")
    assert (tmp_path / "model").read_text() == "a file"


def test_an_empty_folder_and_a_new_one_below_new_ones_are_written_to(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("empty", "a/b/c"):
        fitted().save(tmp_path / name)
        assert_same(fitted(), load(tmp_path / name), TEXTS)


def test_a_model_of_ours_is_replaced(folder):
    fitted_pair().save(folder)
    assert_same(fitted_pair(), load(folder), PAIRS)
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_train_replaces_a_model_only_with_replace(capsys, folder, tmp_path):
    before, data = contents(folder), write_csv(tmp_path / "films.csv")
    command = ["train", data, "--out", folder, "--epochs", "1", "--set", "hidden=4", "--device", "cpu"]
    message = f"{folder} already has a model; pass --replace to replace it, or choose another folder"
    assert message in commands.refused(capsys, *command)
    assert contents(folder) == before
    assert "pass --replace to replace it" in commands.refused(capsys, *command, "--resume")
    assert contents(folder) == before
    assert commands.run(capsys, *command, "--replace").code == 0
    assert contents(folder) != before


def test_what_somebody_put_beside_a_model_is_not_lost(folder):
    (folder / "notes.txt").write_text("do not lose me")
    before = contents(folder)
    with pytest.raises(UserError, match=r"model contains 'notes\.txt' besides a model, which would be lost"):
        fitted_pair().save(folder)
    assert contents(folder) == before


def test_a_link_to_a_model_is_neither_followed_nor_replaced(folder, tmp_path):
    (tmp_path / "latest").symlink_to(folder, target_is_directory=True)
    before = contents(folder)
    with pytest.raises(UserError, match="latest is a symbolic link"):
        fitted_pair().save(tmp_path / "latest")
    assert (tmp_path / "latest").is_symlink()
    assert contents(folder) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "model"]


def test_a_disk_that_fills_up_leaves_the_old_model_whole(folder):
    before, again = contents(folder), load(folder, device="cpu")
    room = len(before["model.safetensors"]) - 100
    with pytest.raises(UserError, match="could not write") as error, disk_limit(room):
        again.save(folder)
    assert "existing files are unchanged" in str(error.value)
    assert contents(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "README.md", "model.safetensors"])
def test_a_write_that_fails_at_any_file_leaves_the_old_model_whole(folder, name, monkeypatch):
    before = contents(folder)
    write, save = Path.write_text, tensor_files.save_file

    def refuse(path):
        if Path(path).name == name:
            Path(path).touch()
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", lambda self, *a, **k: refuse(self) or write(self, *a, **k))
    monkeypatch.setattr(tensor_files, "save_file", lambda w, path, **k: refuse(path) or save(w, path, **k))
    with pytest.raises(UserError, match="No space left on device"):
        fitted_pair().save(folder)
    assert contents(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]
