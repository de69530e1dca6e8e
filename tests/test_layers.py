"""The import rules, as a test: a package imports only the packages before it, no module imports itself in a circle."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from source_trees import SOURCE, nodes, parsed
from steadygaze.study.code_version import PACKAGES as MEASURED

PACKAGE = "steadygaze"
PACKAGES = [*MEASURED, "report", "images", "transformers", "study", "serve", "cli"]
"""In the order data flows; a package imports those before it."""
HEIGHT = {package: height for height, package in enumerate(PACKAGES)}
HEAVY = {"torch", "accelerate", "transformers"}
TEXT_DATA = {  # the parts of data that read and tokenize texts; batches are tensors
    f"data.{path.stem}" for path in (SOURCE / "data").glob("*.py") if path.stem not in ("__init__", "batches")
}
BANNED = {  # allowed by the order, forbidden all the same
    **dict.fromkeys(("results", "report", "cli.command_options", "cli.shared_options", *TEXT_DATA), HEAVY),
    "models.classifier": {f"{PACKAGE}.data"},
    "models.rationalizer": {f"{PACKAGE}.data"},
    "techniques": {f"{PACKAGE}.data"},
    "perturbations": {f"{PACKAGE}.models"},
    "properties.probes": {f"{PACKAGE}.{package}" for package in ("training", "estimator")},
}
ONLY = {  # of ours, these and nothing else
    "report": {f"{PACKAGE}.{package}" for package in ("core", "results", "report")},
    "properties.measures": {f"{PACKAGE}.{package}" for package in ("core", "results", "properties.measures")},
}


def within(module: str, package: str) -> bool:
    """Whether a module is a package, a part of it, or a name in it."""
    return f"{module}.".startswith(f"{package}.")


def imported(path: Path) -> Iterator[str]:
    """Every module that runs or type-checks at import time or later, as written."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def modules(source: Path) -> dict[str, Path]:
    """Every module below the root package, by its name in it."""
    results = {}
    for path in sorted(source.rglob("*.py")):
        name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        if name not in ("__init__", "__main__"):
            results[name] = path
    return results


def wrong_imports(source: Path) -> Iterator[str]:
    for module, path in modules(source).items():
        package = module.split(".")[0]
        for name in imported(path):
            target = name.split(".")[1] if name.startswith(f"{PACKAGE}.") else None
            upward = target is not None and target != package and HEIGHT.get(target, 99) >= HEIGHT[package]
            typed = name.startswith("torch") and module == "core.types"
            if not typed and (upward or forbidden(module, name)):
                yield f"{module} -> {name}"


def forbidden(module: str, name: str) -> bool:
    banned = any(within(name, other) for part, others in BANNED.items() if within(module, part) for other in others)
    rules = [others for part, others in ONLY.items() if within(module, part) and within(name, PACKAGE)]
    return banned or not all(any(within(name, other) for other in others) for others in rules)


def cycles(source: Path) -> list[list[str]]:
    """Modules that import one another in a circle, lazy imports included (Tarjan's strongly connected components)."""
    known = modules(source)
    edges = {
        module: {
            target
            for name in imported(path)
            if name.startswith(f"{PACKAGE}.")
            for target in [
                next(
                    (t for t in (name[len(PACKAGE) + 1 :], name[len(PACKAGE) + 1 :].rpartition(".")[0]) if t in known),
                    None,
                )
            ]
            if target not in (None, module)
        }
        for module, path in known.items()
    }
    while True:  # a module that imports nothing left, or that nothing left imports, is in no circle
        imported_ones = {target for targets in edges.values() for target in targets}
        kept = {
            module: targets & edges.keys()
            for module, targets in edges.items()
            if targets & edges.keys() and module in imported_ones
        }
        if kept == edges:
            return sorted([module, *sorted(targets)] for module, targets in kept.items())
        edges = kept


def test_imports_point_up_the_list_only() -> None:
    assert sorted(wrong_imports(SOURCE)) == []


def test_no_module_imports_itself_in_a_circle() -> None:
    assert cycles(SOURCE) == []


def test_a_circle_is_found(tmp_path: Path) -> None:
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "one.py").write_text("from steadygaze.core import two\n")
    (tmp_path / "core" / "two.py").write_text("def f():\n    from steadygaze.core.one import x\n")
    (tmp_path / "core" / "three.py").write_text("from steadygaze.core import one\n")
    assert cycles(tmp_path) == [["core.one", "core.two"], ["core.two", "core.one"]]


def test_a_wrong_import_is_found(tmp_path: Path) -> None:
    """The test above can fail: upward, torch where it is banned, a measure that calls a model."""
    for name, text in {
        "models/classifier.py": "from steadygaze.estimator import load\n",
        "results/row.py": "import torch.nn\n",
        "report/page.py": "from steadygaze.results.row import Row\nfrom steadygaze.data.eraser import read\n",
        "training/loop.py": "from steadygaze.models.classifier import Classifier\n",
        "properties/measures/sums.py": "from steadygaze.models.inference import Model\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert sorted(wrong_imports(tmp_path)) == [
        "models.classifier -> steadygaze.estimator.load",
        "properties.measures.sums -> steadygaze.models.inference.Model",
        "report.page -> steadygaze.data.eraser.read",
        "results.row -> torch.nn",
    ]


@pytest.fixture(scope="module")
def budgets() -> dict[str, int]:
    """Package -> the most public functions that it may define, as CONTRIBUTING.md states it."""
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert f"has {len(PACKAGES)} packages" in text
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| (\d+) \|$", text, re.MULTILINE)
    return {package: int(budget) for package, budget in rows}


def public_functions(folder: Path) -> int:
    """The functions of all modules whose name has no underscore at the start; methods do not count."""
    statements = (statement for path in folder.rglob("*.py") for statement in parsed(path).body)
    functions = [item.name for item in statements if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
    return sum(not name.startswith("_") for name in functions)


def test_the_table_of_packages_has_their_order(budgets: dict[str, int]) -> None:
    assert list(budgets) == PACKAGES


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_no_more_public_functions_than_its_budget(package: str, budgets: dict[str, int]) -> None:
    """`pytest -s` prints the numbers; more functions need another budget in CONTRIBUTING.md, or a smaller package."""
    count = public_functions(SOURCE / package)
    print(f"{package}: {count} of {budgets[package]} public functions")
    assert 0 < count <= budgets[package]


def test_there_are_no_other_packages_and_no_loose_modules() -> None:
    results = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert results - {"__init__", "__main__"} == set(PACKAGES)
