"""Rules of the whole codebase: every module imports, every registered name is tested, nothing is unpickled."""

import ast
import importlib.util
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import steadygaze
from source_trees import SOURCE, nodes
from steadygaze.data.corpora import CORPORA
from steadygaze.estimator.train_config import TextConfig
from steadygaze.explainers import EXPLAINERS
from steadygaze.models.classifier import Architecture
from steadygaze.models.encoders import ENCODERS
from steadygaze.techniques import TECHNIQUES
from steadygaze.training.optimizers import Training

ROOT = Path(__file__).parent.parent
PACKAGES = [package.name for package in pkgutil.iter_modules(steadygaze.__path__, "steadygaze.") if package.ispkg]
REGISTRIES = ("ATTENTIONS", "CORPORA", "ENCODERS", "EXPLAINERS", "TECHNIQUES", "SCORES", "DECODERS")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_imports_and_has_a_docstring(package: str) -> None:
    names = [module.name for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")]
    for name in [package, *names]:
        if not name.endswith("fused_cells") or importlib.util.find_spec("triton"):
            assert importlib.import_module(name).__doc__, f"{name} has no docstring"


def test_every_public_name_is_there() -> None:
    for name in steadygaze.__all__:
        assert getattr(steadygaze, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = steadygaze.nothing


def test_no_function_is_longer_than_sixty_lines() -> None:
    """Docstrings do not count."""
    functions = [
        (path.name, node.name, node.end_lineno - node.lineno + 1 - docstring_lines(node))  # type: ignore[operator]
        for path in (*SOURCE.rglob("*.py"), *(ROOT / "studies").rglob("*.py"), *(ROOT / "timings").rglob("*.py"))
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef)
    ]
    assert [function for function in functions if function[2] > 60] == []


def test_no_file_of_studies_and_timings_is_longer_than_three_hundred_lines() -> None:
    files = [path for folder in ("studies", "timings") for path in (ROOT / folder).rglob("*.py")]
    assert len(files) > 80
    assert [path.name for path in files if len(path.read_text(encoding="utf-8").splitlines()) > 300] == []


def docstring_lines(node: ast.FunctionDef) -> int:
    first = node.body[0]
    return first.end_lineno - first.lineno + 1 if ast.get_docstring(node) is not None else 0  # type: ignore[operator]


def test_no_identifier_is_a_participle_or_numeral_that_hides_what_it_holds() -> None:
    vague = {"found", "one", "given", "asked", "said"}
    names = [
        (path.relative_to(SOURCE).as_posix(), node.lineno, name)  # type: ignore[attr-defined]
        for path in sorted(SOURCE.rglob("*.py"))
        for node in nodes(path)
        for name in bound_names(node)
    ]
    assert ("core/errors.py", "message") in {(file, name) for file, _, name in names}
    assert [entry for entry in names if entry[2] in vague] == [], "name the value: rows, report, labels, message"


def bound_names(node: ast.AST) -> list[str]:
    """Names that a node binds: variables, parameters, attributes of classes, functions, aliases of imports."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.alias(asname=str(name)):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ExceptHandler(name=str(name)):
            return [name]
    return []


@pytest.mark.parametrize("registry", REGISTRIES)
def test_every_registered_thing_is_tested(registry: str) -> None:
    """A battery runs over each registry, so a new row is tested by being there."""
    pattern = re.compile(rf"parametrize\([^)]*\b{registry}\b", re.DOTALL)
    assert any(pattern.search(path.read_text()) for path in (ROOT / "tests").rglob("test_*.py")), registry


@pytest.mark.parametrize("name", TECHNIQUES)
def test_every_technique_has_a_test_file_of_its_own(name: str) -> None:
    assert (ROOT / "tests" / "techniques" / f"test_{name.replace('-', '_')}.py").is_file()


@pytest.mark.parametrize(
    ("package", "registry", "machinery"),
    [
        ("techniques", TECHNIQUES, {"technique", "rationalizing"}),
        (
            "explainers",
            EXPLAINERS,
            {"explainer", "captum", "resolve_explainer", "class_probability", "word_deletion"},
        ),
    ],
)
def test_every_file_of_a_package_of_variants_is_registered(package: str, registry: dict, machinery: set) -> None:
    registered = {cls.__module__.rsplit(".", 1)[1] for cls in registry.values()}
    assert {path.stem for path in (SOURCE / package).glob("[a-z]*.py")} - machinery == registered


def test_no_setting_has_two_owners() -> None:
    """Settings are one flat dictionary: a key must mean one thing."""
    shared = [name for cls in (Architecture, Training, TextConfig) for name in cls.__dataclass_fields__]
    assert len(set(shared)) == len(shared)
    for technique in TECHNIQUES.values():
        assert not set(technique.__dataclass_fields__) & set(shared)


def test_everything_registered_has_a_docstring() -> None:
    assert all(entry.about for entry in (*CORPORA.values(), *ENCODERS.values()))
    assert all(entry.__doc__ for entry in (*TECHNIQUES.values(), *EXPLAINERS.values()))


def test_nothing_is_unpickled_or_evaluated() -> None:
    banned = {"pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
    for path in SOURCE.rglob("*.py"):
        for node in nodes(path):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                assert not banned & {name.split(".")[0] for name in names}, path
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func) if isinstance(node.func, ast.Name | ast.Attribute) else ""
                options = {word.arg: getattr(word.value, "value", None) for word in node.keywords}
                assert called not in {"eval", "exec", "compile", "torch.load"}, f"{path}: {called}"
                assert called != "np.load" or options.get("allow_pickle") is False, path
                assert options.get("trust_remote_code") is not True, path


def test_all_networks_train_with_the_loop_of_training() -> None:
    """One more optimizer is allowed: it searches attention scores, which are no weights of a network."""
    loops = {"training/training_loop.py", "training/stacked_loop.py"}  # StageLoop, fit_small_network; StackedLoop
    allowed = {*loops, "properties/probes/counterfactual_attention.py"}
    optimizing = set()
    for path in SOURCE.rglob("*.py"):
        if re.search(r"zero_grad|(optimi[sz]er|adam|sgd)\w*\.step\(", path.read_text()):
            optimizing.add(path.relative_to(SOURCE).as_posix())
    assert optimizing == allowed, "a file trains a network: derive from training.training_loop.StageLoop"


@pytest.mark.parametrize("arguments", [["-c", "import steadygaze"], ["-m", "steadygaze", "--help"]])
def test_torch_is_not_imported_before_it_is_used(arguments: list[str]) -> None:
    run = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = {line.rsplit("|", 1)[1].strip() for line in run.stderr.splitlines() if line.startswith("import time:")}
    assert not loaded & {"torch", "numpy", "transformers", "sklearn", "pyarrow", "pandas", "pydantic"}
    assert "steadygaze.cli.command_options" not in loaded  # the options of commands


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Command -> the modules that are imported when it ends.  One process predicts, then trains."""
    folder = tmp_path_factory.mktemp("imports")
    texts, labels = [f"a {'good' if i % 2 else 'dull'} film {i}" for i in range(24)], [i % 2 for i in range(24)]
    (folder / "data.csv").write_text("\n".join(["text,label", *map("{},{}".format, texts, labels)]))
    steadygaze.TextClassifier(encoder="average", epochs=1, device="cpu").fit(texts, labels).save(folder / "model")
    predict = ["predict", str(folder / "model"), "a good film"]
    train = ["train", str(folder / "data.csv"), "--out", str(folder / "new")]
    train += ["--encoder", "average", "--epochs", "1", "--quiet"]
    script = f"""
import sys
from contextlib import suppress
from steadygaze.cli import main
for command in ({predict}, {train}):
    with suppress(SystemExit):
        main(command)
    print("imported by", command[0], *sys.modules, flush=True)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    lines = [line.split() for line in run.stdout.splitlines() if line.startswith("imported by ")]
    return {command: set(modules) for _, _, command, *modules in lines}


@pytest.mark.slow
def test_training_imports_no_code_of_audits_reports_and_images(imported: dict[str, set[str]]) -> None:
    options = {"steadygaze.study", "steadygaze.study.study_options"}  # of other commands
    packages = {name.split(".")[1] for name in imported["train"] - options if name.startswith("steadygaze.")}
    assert {"estimator", "training"} <= packages
    assert not packages & {"auditing", "properties", "certificates", "bundle", "report", "images", "study", "serve"}


@pytest.mark.slow
def test_predict_imports_only_what_a_word_model_needs(imported: dict[str, set[str]]) -> None:
    """scikit-learn, pandas, accelerate and PyTorch's compiler would double the time of a cold start."""
    loaded = imported["predict"]
    assert "steadygaze.models.classifier" in loaded
    assert not loaded & {
        "sklearn",
        "scipy",
        "pandas",
        "pyarrow",
        "accelerate",
        "transformers",
        "captum",
        "torch._dynamo",
    }


SCRIPTS = ("examples", "studies", "timings")


@pytest.mark.parametrize("folder", SCRIPTS)
def test_every_name_that_a_script_imports_from_the_package_exists(folder: str) -> None:
    """Also imports inside functions, which nothing else runs."""
    missing = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "steadygaze":
                module = importlib.import_module(node.module)
                for name in (alias.name for alias in node.names):
                    if not hasattr(module, name) and importlib.util.find_spec(f"{node.module}.{name}") is None:
                        missing.append(f"{path.name}: {node.module}.{name}")
    assert not missing


def test_every_file_of_the_project_that_a_page_names_exists() -> None:
    pages = [ROOT / "CONTRIBUTING.md", ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *SOURCE.rglob("*.py")]
    files = re.compile(r"(?<![\w/.-])(?:bench|docs|src|studies|tests|timings)/[a-z0-9_/-]+\.(?:py|toml|csv|jinja)\b")
    names = [(page.name, name) for page in pages for name in files.findall(page.read_text(encoding="utf-8"))]
    assert len(names) > 30
    assert [(page, name) for page, name in names if not (ROOT / name).exists()] == []


def test_the_folder_of_published_corpora_is_that_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("studies.data_folder")
    monkeypatch.delenv("STEADYGAZE_DATA", raising=False)
    with pytest.raises(SystemExit, match=r"STEADYGAZE_DATA is not set: set STEADYGAZE_DATA to a folder"):
        module.data_folder("sst2")
    monkeypatch.setenv("STEADYGAZE_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"sst2 is not a folder: set STEADYGAZE_DATA"):
        module.data_folder("sst2")
    (tmp_path / "sst2").mkdir()
    assert module.data_folder("sst2") == tmp_path
    files = [path for folder in SCRIPTS for path in (ROOT / folder).rglob("*.py")]
    beside = [path.name for path in files if '"shared" / "data"' in path.read_text("utf-8")]
    assert beside == [], "a folder beside the checkout is not data of the user"


def test_no_path_of_this_machine_and_no_registry_host_in_tracked_files() -> None:
    result = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.skip("not a git checkout")
    homes = "|".join(f"/{name}/[a-z]" for name in ("home", "root", "Users"))
    registries = "|".join(["py" + r"pi\.", "python" + "hosted", "npm" + "js"])
    hosts = re.compile(f"{homes}|{registries}")
    for name in result.stdout.split():
        path = ROOT / name
        if path.is_file() and path.suffix in {".py", ".md", ".toml", ".txt", ".jinja", ""} and path != Path(__file__):
            assert not hosts.search(path.read_text(encoding="utf-8", errors="replace")), name
