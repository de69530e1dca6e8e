"""The commands and the Python of README run as printed; only data and networks are smaller, to be quick."""

import re
from pathlib import Path

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from estimator.tiny import LABELS, TEXTS
from printed_pages import DOCS, ROOT, blocks, check_links, folder, printed, run
from steadygaze.cli import COMMANDS, demo

__all__ = ["folder"]
pytestmark = pytest.mark.usefixtures("short_probe_in_module")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_commands_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build = ["synonyms", "build", "wordnet"]  # runs in the test of docs/how-to/synonyms.md, if WordNet is installed
    assert build in [command[:3] for command in printed((DOCS / "how-to" / "synonyms.md").read_text(encoding="utf-8"))]
    command_lines = [command for command in printed(README) if command[:3] != build]
    assert len(command_lines) == len(printed(README)) - 1
    assert {command[0] for command in command_lines} >= {"train", "predict", "explain", "certify", "audit"}
    outputs = [run(capsys, command) for command in command_lines]
    assert "saved in model" in outputs[0]
    assert (folder / "why.html").is_file()
    assert "Label that the highlighted words do not account for" in (folder / "audit.html").read_text(encoding="utf-8")
    assert "## Audit of the explanations" in (folder / "model" / "README.md").read_text(encoding="utf-8")


def test_no_command_of_the_readme_stops_a_training_before_anything_is_learned() -> None:
    """A reader's own file may be small: two epochs of 300 texts are twenty steps."""
    assert not any("--epochs" in command for command in printed(README))


@pytest.mark.filterwarnings("ignore::steadygaze.core.errors.SampleWarning")  # 100 of its texts are audited
def test_the_python_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts, labels = [*TEXTS] * 5, [*LABELS] * 5
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, labels)
    audit, train = blocks(README, "python")
    exec(compile(audit, "README.md", "exec"), {"model": model, "texts": texts, "labels": labels})
    assert "Stability under rewording not measured" in capsys.readouterr().out
    assert (folder / "audit.html").is_file()
    small = train.replace("seed=0", 'seed=0, epochs=1, settings={"hidden": 8}')
    assert small != train
    exec(compile(small, "README.md", "exec"), {"texts": texts, "labels": labels})
    assert "lovely" in capsys.readouterr().out
    assert (folder / "stable" / "model.safetensors").is_file()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_every_link_leads_to_a_file_and_a_heading(page: str) -> None:
    check_links(ROOT / page)


@pytest.mark.parametrize(
    "word",
    [
        "faithfulness",
        "plausibility",
        "saliency",
        "attribution",
        "feature importance",
        "rationale extraction",
        "attention",
        "robustness",
        "stability",
        "leakage",
        "distillation",
        "baseline",
        "explainability",
        "interpretability",
    ],
)
def test_readers_can_search_for_the_terms_of_the_field(word: str) -> None:
    assert word in README.lower()


def test_the_readme_stays_short_and_opens_with_a_command_a_result_and_its_caveat() -> None:
    assert len(README.split()) <= 1300
    opening = README[: README.index("## ")]
    order = [opening.index(part) for part in ("make demo", "**Result.**", "**Caveat.**", "![")]
    assert order == sorted(order)


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("help", "demo", "test", "check", "timings", "docs", "clean"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    assert all(f"make {target}" in README for target in ("demo", "test"))


def test_the_texts_about_the_demonstration_count_its_models() -> None:
    numbers = {2: "two", 3: "three"}
    trained, audited = numbers[len(demo.MODELS)], numbers[len(demo.PAGES)]
    texts = [
        COMMANDS["demo"][1],
        *re.findall(
            r"^(?:make )?demo\b.*#.*", "\n".join([(ROOT / "Makefile").read_text(encoding="utf-8"), README]), re.M
        ),
        *re.findall(
            r"(?:steadygaze demo`: it|The demo) trains.*(?:\n.*)?", "".join(map(_page, ("index", "get-started")))
        ),
    ]
    assert len(texts) == 5
    for text in texts:
        assert re.search(rf"[Tt]rains? {trained} models", text)
        assert re.search(rf"audits? {audited}\b", text)


def _page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def test_no_placeholder_is_left() -> None:
    assert not re.findall(r"\b[A-Z]{2,}_[A-Z]{2,}\b", README.replace("STEADYGAZE_DATA", ""))
