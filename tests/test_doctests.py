"""The examples in the docstrings are true, and every public name has a complete docstring."""

import ast
import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import steadygaze

pytestmark = pytest.mark.usefixtures("short_probe_in_module", "short_reader_in_module")
MODULES = [
    module.name
    for module in pkgutil.walk_packages(steadygaze.__path__, "steadygaze.")
    if ">>> " in Path(module.module_finder.find_spec(module.name).origin).read_text(encoding="utf-8")
]
PUBLIC = [name for name in steadygaze.__all__ if name != "__version__"]
WITHOUT_EXAMPLE = {"load_images"}
"""Its files are not in the repository."""


def public(name: str) -> Any:
    return importlib.import_module("steadygaze.audit.audit").audit if name == "audit" else getattr(steadygaze, name)


def test_there_are_examples():
    assert {"steadygaze.core.settings", "steadygaze.core.errors", "steadygaze.results.row"} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_every_example_gives_its_documented_output(name):
    module = importlib.import_module(name)
    tests = doctest.DocTestFinder().find(module)
    wrapped = [test for function in decorated(module) for test in doctest.DocTestFinder().find(function)]
    runner = doctest.DocTestRunner()
    for test in [*tests, *wrapped]:
        runner.run(test)
    assert runner.tries > 0
    assert runner.failures == 0


def decorated(module: Any) -> list[Callable[..., Any]]:
    """Functions of a module that doctest does not find, because their decorator is from another module."""
    values = [value for value in vars(module).values() if inspect.isfunction(value) and hasattr(value, "__wrapped__")]
    return [inspect.unwrap(value) for value in values if value.__module__ == module.__name__]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example_that_runs(name):
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(public(name)) or "")
    running = [example for example in examples if not example.options.get(doctest.SKIP)]
    assert running or name in WITHOUT_EXAMPLE


@pytest.mark.parametrize("name", [name for name in PUBLIC if inspect.isfunction(public(name))])
def test_every_parameter_of_a_public_function_is_described(name):
    check_parameters(public(name))


@pytest.mark.parametrize("name", ["TextClassifier", "ImageClassifier"])
def test_every_parameter_of_a_public_method_is_described(name):
    methods = ast.parse(inspect.getsource(public(name))).body[0].body
    names = [node.name for node in methods if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    assert {"fit", "predict", "explain", "save"} <= set(names)
    for method in names:
        check_parameters(getattr(public(name), method))


def check_parameters(function: Any) -> None:
    text = inspect.getdoc(function) or ""
    parameters = [p for p in inspect.signature(inspect.unwrap(function)).parameters if p not in ("self", "cls")]
    for parameter in parameters:
        assert f"\n{parameter} : " in text or f"\n**{parameter}\n" in text, f"{function.__name__}: {parameter}"
    assert not parameters or "\nParameters\n----------\n" in text
    if inspect.signature(function).return_annotation not in (None, "None"):
        assert "\nReturns\n-------\n" in text, function.__name__
