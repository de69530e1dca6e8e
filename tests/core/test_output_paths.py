"""Outputs replace only what steadygaze wrote: never an input, a link, a device, or a file inside a model folder."""

import json
import os
from pathlib import Path

import pytest

import commands
from estimator.tiny import fitted
from images.test_image_explanation import explained
from report.audited import full_report
from results.test_comparison import full
from robustness.damage import null_device
from robustness.harness import assert_clean, run_case
from steadygaze.certificates.certificate import Certificates
from steadygaze.cli import audit_and_verify, demo
from steadygaze.core.errors import UserError
from steadygaze.core.output_paths import check_file, check_folder, check_separate, write_output
from steadygaze.estimator import resumable_training
from steadygaze.report.page import render, write
from steadygaze.results.explanation import Explanation
from steadygaze.results.model_card import write_card
from steadygaze.study import compare as compare_run

ONE = Explanation("good film", ("good", "film"), ((0, 4), (5, 9)), (0.7, 0.3), "yes", {"yes": 1.0})
WRITERS = {
    "explanation": lambda path, **more: ONE.to_html(path, **more),
    "page": lambda path, **more: write(path, render("A page"), **more),
    "report page": lambda path, **more: full_report(plots={}).to_html(path, **more),
    "report": lambda path, **more: full_report(plots={}).to_json(path, **more),
    "comparison page": lambda path, **more: full().to_html(path, **more),
    "comparison": lambda path, **more: full().to_json(path, **more),
    "certificates": lambda path, **more: Certificates(()).to_json(path, **more),
    "picture": lambda path, **more: explained().to_png(path, **more),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_method_replaces_its_own_file_and_other_files_only_on_request(name: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    WRITERS[name](path)
    written = path.read_bytes()
    WRITERS[name](path)
    path.write_text("mine")
    with pytest.raises(UserError, match="out exists: --replace overwrites it"):
        WRITERS[name](path)
    assert path.read_text() == "mine"
    WRITERS[name](path, replace=True)
    assert path.read_bytes() == written


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("target", ["file", "missing"])
def test_a_link_is_neither_followed_nor_replaced(target: str, replace: bool, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / target)
    with pytest.raises(UserError, match="link is a symbolic link"):
        write_output(tmp_path / "link", "text", replace)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == ""
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("replace", [False, True])
def test_a_device_or_a_pipe_is_never_replaced(replace: bool, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    device = null_device(tmp_path / "null")
    before = device.stat()
    for path in (tmp_path / "pipe", device):
        with pytest.raises(UserError, match="is not a regular file"):
            write_output(path, "text", replace)
    assert device.stat() == before


def test_a_folder_is_not_a_file_and_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="is a folder; name a file"):
        check_file(tmp_path, replace=True)
    with pytest.raises(UserError, match="file is a file; name a folder"):
        check_folder(tmp_path / "file")


@pytest.mark.parametrize("name", ["x.html", "model.safetensors", "README.md", "sub/folder/x.html"])
@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin"])
def test_nothing_is_written_inside_a_model_folder(name: str, weights: str, tmp_path: Path) -> None:
    for file in ("config.json", weights):
        (tmp_path / "m").mkdir(exist_ok=True)
        (tmp_path / "m" / file).touch()
    (tmp_path / "link").symlink_to(tmp_path / "m", target_is_directory=True)
    for folder in ("m", "link"):
        with pytest.raises(UserError, match="is inside the model"):
            check_file(tmp_path / folder / name, replace=True)
        with pytest.raises(UserError, match="is inside the model"):
            check_folder(tmp_path / folder / "sub")


def test_two_outputs_of_a_command_are_separate(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    for path, other in (("x", "x"), ("x", "link/x")):
        with pytest.raises(UserError, match=r"--out .*x is the same path as --html .*x; name separate paths"):
            check_separate({"--out": tmp_path / path, "--html": tmp_path / other})
    with pytest.raises(UserError, match=r"--html .*x is inside --out"):
        check_separate({"--out": tmp_path, "--html": tmp_path / "link" / "x"})
    check_separate({"--out": tmp_path / "x", "--html": tmp_path / "x.html"})


@pytest.mark.parametrize("letter", ["x", "é"])
def test_the_temporary_names_of_an_output_are_not_too_long(letter: str, tmp_path: Path) -> None:
    longest = letter * (230 // len(letter.encode()))
    write_output(tmp_path / longest, "text")
    with pytest.raises(UserError, match="is too long: at most 230 bytes"):
        write_output(tmp_path / (longest + letter), "text")
    (tmp_path / "data.csv").write_text("text,label\n" + "a good film,yes\na bad film,no\n" * 20)
    quick = ["--encoder", "average", "--epochs", "1", "--set", "hidden=4", "--set", "dimension=4", "--device", "cpu"]
    out = tmp_path / ("m" * 230)
    assert run_case(["train", tmp_path / "data.csv", "--out", out, *quick]).code == 0


def test_a_page_that_only_mentions_the_generator_is_not_ours(tmp_path: Path) -> None:
    page = '<!doctype html>\n<title>mine</title>\n<pre>&lt;meta&gt;</pre><meta name="generator" content="steadygaze">'
    (tmp_path / "mine.html").write_text(page)
    with pytest.raises(UserError, match="exists: --replace overwrites it"):
        write_output(tmp_path / "mine.html", "text")
    assert (tmp_path / "mine.html").read_text() == page


def test_the_parents_of_an_output_may_be_links(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder", target_is_directory=True)
    write_output(tmp_path / "link" / "page.html", "text")
    assert (tmp_path / "folder" / "page.html").read_text() == "text"


def test_inputs_are_recognized_by_any_name_they_have(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("text\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.csv").write_text("text\n")
    os.link(tmp_path / "in.csv", tmp_path / "hard.csv")
    (tmp_path / "here").symlink_to(tmp_path, target_is_directory=True)
    for name in ("in.csv", "hard.csv", "here/in.csv", "data/train.csv"):
        with pytest.raises(UserError, match="is an input of this command"):
            check_file(tmp_path / name, [tmp_path / "in.csv", tmp_path / "data"], replace=True)
    assert not check_file(tmp_path / "data" / "new.html", [tmp_path / "data"])
    with pytest.raises(UserError, match=r"contains .*in\.csv, an input of this command"):
        check_folder(tmp_path, [tmp_path / "in.csv"])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs") / "m"
    fitted().save(folder)
    return folder


def cases(model: Path, here: Path) -> dict[str, tuple[list[object], str]]:
    data = here / "in.csv"
    explain: list[object] = ["explain", model, "--file", data]
    audit: list[object] = ["audit", model, "--data", data]
    own = model / "model.safetensors"
    return {
        "explain, input as page": ([*explain, "--html", data], "is an input"),
        "explain, weights as page": ([*explain, "--html", own, "--replace"], "is inside the model"),
        "explain, device": ([*explain, "--html", here / "null", "--replace"], "is not a regular file"),
        "explain, link": ([*explain, "--html", here / "link", "--replace"], "is a symbolic link"),
        "explain, foreign file": ([*explain, "--html", here / "mine.txt"], "exists: --replace overwrites it"),
        "explain, foreign rationales": ([*explain, "--eraser", here / "mine.txt"], "exists: --replace overwrites it"),
        "audit, input as page": ([*audit, "--html", data, "--replace"], "is an input"),
        "audit, policy as page": (
            [*audit, "--policy", here / "mine.txt", "--html", here / "mine.txt", "--replace"],
            "is an input",
        ),
        "audit, model as bundle": ([*audit, "--bundle", model, "--replace"], "is an input"),
        "audit, bundle in a model": ([*audit, "--bundle", model / "bundle"], "is inside the model"),
        "audit, page as bundle": ([*audit, "--bundle", here / "x", "--html", here / "x"], "is the same path as"),
        "audit, page in the bundle": (
            [*audit, "--bundle", here / "x", "--html", here / "x" / "y"],
            "is inside --bundle",
        ),
        "audit, bundle in the page": ([*audit, "--html", here / "x", "--bundle", here / "x" / "y"], "is inside --html"),
        "audit, page of a folder": ([*audit, "--html", f"{here}/p/"], "names a folder; name a file"),
        "explain, page of a folder": ([*explain, "--html", f"{here}/p/"], "names a folder; name a file"),
        "explain, rationales of a folder": ([*explain, "--eraser", f"{here}/p/"], "names a folder; name a file"),
        "train, teacher_cache in a model": (
            ["train", data, "--out", here / "x", "--teacher-cache", model / "s"],
            "inside the model",
        ),
        "train, model as teacher_cache": (
            ["train", data, "--out", here / "x", "--teacher-cache", model],
            "contains 'README.md'",
        ),
        "train, link as teacher_cache": (
            ["train", data, "--out", here / "x", "--teacher-cache", here / "folder-link"],
            "symbolic link",
        ),
        "train, teacher_cache in the model": (
            ["train", data, "--out", here / "x", "--teacher-cache", here / "x" / "s"],
            "inside --out",
        ),
        "train, run as teacher_cache": (
            ["train", data, "--out", here / "x", "--teacher-cache", here / "x.unfinished"],
            "is the same path as the run of --out",
        ),
        "train, reference replaced": (["train", data, "--from", model, "--out", model, "--replace"], "is an input"),
        "train, in a model": (["train", data, "--out", model / "new"], "is inside the model"),
        "compare, link": (["compare", data, "--techniques", "vanilla", "--out", here / "folder-link"], "symbolic link"),
        "compare, in a model": (["compare", data, "--techniques", "vanilla", "--out", model / "c"], "inside the model"),
        "fit-explainer, black box": (
            ["fit-explainer", model, "--data", data, "--out", model, "--replace"],
            "is an input",
        ),
        "demo, link": (["demo", "--out", here / "folder-link"], "is a symbolic link"),
    }


@pytest.mark.parametrize("case", cases(Path(), Path()))
def test_a_command_refuses_before_any_work(
    case: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.csv").write_text("text,label\n" + "a good film,yes\na bad film,no\n" * 20)
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "mine.txt")
    null_device(tmp_path / "null")
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder-link").symlink_to(tmp_path / "empty", target_is_directory=True)

    def work(*_: object, **__: object) -> None:
        raise AssertionError("the command began to work")

    for name in (
        "estimator.text_classifier.load_classifier",
        "adapters.as_adapter.as_adapter",
        "data.corpora.load_corpus",
    ):
        monkeypatch.setattr(f"steadygaze.{name}", work)
    for module, name in (
        (audit_and_verify, "load_audit"),
        (compare_run, "compare"),
        (demo, "load_corpus"),
        (resumable_training, "train"),
    ):
        monkeypatch.setattr(module, name, work)
    command, message = cases(model, tmp_path)[case]
    ended = run_case(command, watch=[tmp_path, model])
    assert_clean(ended, codes=[2])
    assert message in ended.err


def test_replace_overwrites_a_foreign_page_and_foreign_rationales(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.csv").write_text("text\na good film\n")
    for option in ("--html", "--eraser"):
        (tmp_path / "out").write_text("mine")
        command = ["explain", model, "--file", tmp_path / "in.csv", option, tmp_path / "out", "--device", "cpu"]
        assert commands.run(capsys, *command, "--replace").code == 0
        assert (tmp_path / "out").read_text() != "mine"


def test_a_card_that_is_a_link_is_not_copied_into_the_model_folder(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "m" / "README.md").symlink_to(tmp_path / "secret")
    assert "is unchanged: it is not a regular file" in write_card(tmp_path / "m", full_report(plots={}))
    assert (tmp_path / "m" / "README.md").is_symlink()
    assert (tmp_path / "secret").read_text() == "secret"


def test_a_report_without_the_mark_of_its_writer_is_still_read(tmp_path: Path) -> None:
    values = full_report(plots={}).to_dict()
    assert values.pop("generator") == "steadygaze"
    assert type(full_report()).from_dict(json.loads(json.dumps(values))).title == full_report().title
