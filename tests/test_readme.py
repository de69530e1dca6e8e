"""The commands and the Python of README and docs run as printed; only data and networks are smaller, to be quick."""

import gzip
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import commands
from estimator.tiny import LABELS, TEXTS, fitted
from steadygaze.data.synonym_formats import DEBIAN_FOLDER

pytestmark = pytest.mark.usefixtures("hasty_judge")
ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SMALLER = {
    "train": ["--set", "hidden=8", "--epochs", "1"],
    "compare": ["--epochs", "1", "--limit", "5", "--seeds", "1"],
    "audit": ["--sample", "5"],
    "fit-explainer": ["--set", "epochs=1"],
}
"""Options that each command gets beside those that are printed."""


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
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], command: list[str]) -> str:
    """The output of a command.  A requirement may fail: it is about the reader's model."""
    ended = commands.run(capsys, *command, *SMALLER.get(command[0], ()))
    gated = {"--require", "--policy"} & set(command)
    assert ended.code == 0 or (gated and ended.code == 1), f"{shlex.join(command)}: {ended.err}"
    return ended.out


def test_the_commands_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command_lines = printed(README)
    assert {command[0] for command in command_lines} >= {"train", "predict", "explain", "certify", "audit"}
    outputs = [run(capsys, command) for command in command_lines]
    assert "saved in model" in outputs[0]
    assert (folder / "why.html").is_file()
    assert (folder / "audit.html").is_file()


def test_no_command_of_the_readme_stops_a_training_before_anything_is_learned() -> None:
    """A reader's own file may be small: two epochs of 300 texts are twenty steps."""
    assert not any("--epochs" in command for command in printed(README))


DOCS = ROOT / "docs"
QUICK_PAGES = {"how-to/data", "how-to/human-rationales"}
WITHOUT_WORDNET = pytest.mark.skipif(not (DEBIAN_FOLDER / "data.noun").is_file(), reason="apt install wordnet-base")


def pages_with_commands() -> list[object]:
    """Every page with commands but the results, whose data is not in the repository; most are slow."""
    names = [path.relative_to(DOCS).with_suffix("").as_posix() for path in sorted(DOCS.rglob("*.md"))]
    names = [name for name in names if not name.startswith("results/") and printed(read(name))]
    marks = {name: [] if name in QUICK_PAGES else [pytest.mark.slow] for name in names}
    marks["how-to/synonyms"].append(WITHOUT_WORDNET)
    return [pytest.param(name, marks=marks[name]) for name in names]


def read(page: str) -> str:
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", pages_with_commands())
def test_the_commands_of_the_docs_run(page: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = read(page).replace("[2000,200,200]", "[60,20,20]")
    command_lines = printed(text)
    if not any(command[0] == "train" and "model" in command for command in command_lines):
        fitted().save(folder / "model")
    if any("--sign" in command for command in command_lines):
        if shutil.which("ssh-keygen") is None:
            command_lines = [command for command in command_lines if not {"--sign", "--signers"} & set(command)]
        else:
            make_key(folder)
    for policy in blocks(text, "toml"):
        (folder / "policy.toml").write_text(policy, encoding="utf-8")
    for command in command_lines:
        run(capsys, command)


def make_key(folder: Path) -> None:
    """The key and the list of signers that docs/how-to/gate-ci.md makes in a shell."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "auditor"], check=True)
    (folder / "signers").write_text(f"auditor@example.org {(folder / 'auditor.pub').read_text()}")


@pytest.mark.filterwarnings("ignore::steadygaze.core.errors.SampleWarning")  # 100 of its texts are audited
def test_the_python_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts, labels = [*TEXTS] * 5, [*LABELS] * 5
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, labels)
    audit, train = blocks(README, "python")
    exec(compile(audit, "README.md", "exec"), {"model": model, "texts": texts, "labels": labels})
    assert "undecided" in capsys.readouterr().out
    assert (folder / "audit.html").is_file()
    small = train.replace("settings={", 'epochs=1, settings={"hidden": 8, "teachers": 2, ')
    assert small != train
    exec(compile(small, "README.md", "exec"), {"texts": texts, "labels": labels})
    assert "lovely" in capsys.readouterr().out
    assert (folder / "stable" / "model.safetensors").is_file()


SMALL_EXPLAINERS = {
    "2000,200,200": "60,10,10",
    "[:1500]": "[:60]",
    '"hidden": 32': '"hidden": 4',
    "10}": "1}",
    " 6": " 1",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::steadygaze.core.errors.LeakageWarning")  # it learns for one epoch here
def test_the_python_about_explainers_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples = blocks(read("how-to/explain-scikit-learn"), "python")
    assert len(examples) == 2
    for code in examples:
        for printed, smaller in SMALL_EXPLAINERS.items():
            code = code.replace(printed, smaller)
        exec(compile(code.replace("epochs=6", "epochs=1"), "explain-scikit-learn.md", "exec"), {})
    assert capsys.readouterr().out.count("post-hoc-accuracy|") == 3
    assert (folder / "l2x" / "model.safetensors").is_file()
    assert (folder / "l2x.png").is_file()


def anchors(page: str) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("http"):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


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


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("help", "demo", "test", "check", "bench", "docs", "clean"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    assert all(f"make {target}" in README for target in ("demo", "test"))


def test_no_placeholder_is_left() -> None:
    assert not re.findall(r"\b[A-Z]{2,}_[A-Z]{2,}\b", README.replace("STEADYGAZE_DATA", ""))
