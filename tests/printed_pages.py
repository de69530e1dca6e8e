"""The commands and the Python of README and docs run as printed; only data and networks are smaller, to be quick."""

import gzip
import json
import re
import shlex
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import commands
from estimator.tiny import LABELS, TEXTS
from steadygaze.cli import COMMANDS, app

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SMALLER = {
    "train": ["--set", "hidden=8", "--epochs", "1"],
    "compare": ["--epochs", "1", "--limit", "5", "--seeds", "1", "--workers", "1"],
    "tune": ["--trials", "2", "--epochs", "1", "--workers", "1"],
    "audit": ["--sample", "5"],
    "fit-explainer": ["--set", "epochs=1"],
}
"""Options that each command gets beside those that are printed; tests/study has several workers."""


def blocks(page: str, *languages: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [block for language, block in fenced if language in languages]


def printed(page: str) -> list[list[str]]:
    """The command lines of steadygaze, split as a shell splits them."""
    lines = [line for block in blocks(page, "bash", "") for line in block.splitlines()]
    ours = [line for line in lines if line.startswith("steadygaze ")]
    assert not any(re.search(r"[|&;<$`]|(?<![<>=])>(?!=)", re.sub(r'"[^"]*"', "", line)) for line in ours), (
        "needs a shell"
    )
    return [shlex.split(line, comments=True)[1:] for line in ours]


def mentioned(page: str) -> list[list[str]]:
    """The command lines in sentences, which may be incomplete, of jobs for CI, and of sessions in a shell."""
    prose = re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)
    shells = re.findall(r"^(?:- run:|\$) (steadygaze .*)$", "".join(blocks(page, "yaml", "console")), re.MULTILINE)
    return [shlex.split(line)[1:] for line in [*re.findall(r"`(steadygaze [^`\n]*)`", prose), *shells]]


@cache
def application() -> Any:
    """The command line, with all commands."""
    for module, _ in COMMANDS.values():
        import_module(f"steadygaze.cli.{module}")  # registers the command
    return get_command(app)


def find_command(words: list[str]) -> tuple[Any, list[str]]:
    """The command that a command line calls, and the words after its name."""
    command = application()
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        command, words = command.commands[words[0]], words[1:]
    return command, words


def parse(words: list[str]) -> None:
    """Parse a command line as the CLI does; raise an error for an unknown option, a missing one or a wrong value."""
    command, arguments = find_command(words)
    if "--import" in arguments:  # the page defines the module, which parsing would import
        arguments = [*arguments]
        arguments[arguments.index("--import") + 1] = "json"
    command.make_context(command.name, arguments)


def unknown_options(words: list[str]) -> set[str]:
    command, arguments = find_command(words)
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return {word.partition("=")[0] for word in arguments if word.startswith("--")} - known


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of a reader, with the files that the pages name."""
    rows = [f'"{text}. It came cold.",{label}\n' for text, label in zip(TEXTS, LABELS, strict=True)]
    (tmp_path / "reviews.csv").write_text("".join(["review,verdict\n", *rows * 5]))
    (tmp_path / "test.csv").write_text("".join(["review,verdict\n", *rows]))
    with gzip.open(tmp_path / "glove.6B.100d.txt.gz", "wt") as vectors:
        vectors.writelines(
            f"{word} {' '.join([number] * 100)}\n" for word, number in (("good", "0.1"), ("bad", "-0.1"))
        )
    (tmp_path / "synonyms.jsonl").write_text(json.dumps({"word": "good", "synonyms": ["fine"]}) + "\n")
    (tmp_path / "movies" / "docs").mkdir(parents=True)
    for row, text in enumerate(TEXTS):
        (tmp_path / "movies" / "docs" / f"{row}.txt").write_text(text)
    marked = [
        {"annotation_id": f"{row}.txt", "classification": label, "evidences": []} for row, label in enumerate(LABELS)
    ]
    for name in ("train.jsonl", "test.jsonl"):
        (tmp_path / "movies" / name).write_text("".join(json.dumps(row) + "\n" for row in marked))
    labeled = zip(TEXTS, LABELS, strict=True)
    marked_rows = [{"text": text, "label": label, "evidence": ["good"]} for text, label in labeled if "good" in text]
    (tmp_path / "marked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in marked_rows))
    spoken = [
        {"text": f"{text} it came cold", "label": label, "parts": [text, "it came cold"]}
        for text, label in zip(TEXTS, LABELS, strict=True)
    ]
    (tmp_path / "spoken.jsonl").write_text("".join(json.dumps(row) + "\n" for row in spoken * 2))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], command: list[str]) -> str:
    """The output of a command.  A requirement may fail: it is about the reader's model."""
    smaller = () if "--verify" in command else SMALLER.get(command[0], ())  # --verify repeats the settings of a bundle
    ended = commands.run(capsys, *command, *smaller)
    gated = {"--require", "--policy"} & set(command)
    assert ended.code == 0 or (gated and ended.code == 1), f"{shlex.join(command)}: {ended.err}"
    return ended.out


def anchors(page: str) -> set[str]:
    """The names that GitHub, and the site, give to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("http") or is_generated(page, link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


def is_generated(page: Path, link: str) -> bool:
    """Pages that `make docs` makes from the code; its strict build checks the links to them."""
    target = (page.parent / link.partition("#")[0]).resolve()
    return (
        target.parent in [DOCS / folder for folder in ("api", "cli", "contributing", "metrics", "methods", "notebooks")]
        and not target.exists()
    )
