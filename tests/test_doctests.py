"""The examples in the docstrings are true, and every public name has a complete docstring."""

import ast
import dataclasses
import doctest
import importlib
import inspect
import itertools
import pkgutil
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import api_pages
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
    return importlib.import_module("steadygaze.auditing.audit").audit if name == "audit" else getattr(steadygaze, name)


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


REFERENCE = api_pages.public_names() | api_pages.RETURNED | api_pages.EXTENSIONS
"""Name -> path of every object of the API reference."""
CLASSES = [name for name, path in REFERENCE.items() if inspect.isclass(pkgutil.resolve_name(path))]
FUNCTIONS = [name for name in REFERENCE if name not in CLASSES and name not in api_pages.DATA]


def test_the_reference_has_classes_and_functions():
    assert {"audit", "load", "explain", "settings"} <= set(FUNCTIONS)
    assert {"TextClassifier", "Report", "Explanation", "ModelAdapter", "Technique", "Stage"} <= set(CLASSES)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_of_a_public_function_is_described(name):
    check_parameters(pkgutil.resolve_name(REFERENCE[name]))


@pytest.mark.parametrize("name", CLASSES)
def test_every_method_field_and_property_of_a_public_class_is_described(name):
    """Also what a class inherits from the package; scikit-learn describes its own methods."""
    reference = pkgutil.resolve_name(REFERENCE[name])
    for owner in reference.__mro__:
        if not owner.__module__.startswith("steadygaze."):
            continue
        for member, value in vars(owner).items():
            if member.startswith("_"):
                continue
            if inspect.isfunction(value) or isinstance(value, classmethod | staticmethod):
                check_parameters(getattr(reference, member))
            elif isinstance(value, property | cached_property):
                assert value.__doc__, f"{name}.{member}"
    if dataclasses.is_dataclass(reference):
        check_fields(reference)


def check_fields(reference: type) -> None:
    """Every field of a dataclass has a docstring below it, or is a parameter in that of its class."""
    described: set[str] = set()
    for owner in filter(dataclasses.is_dataclass, reference.__mro__):
        described |= {
            node.target.id
            for node, following in itertools.pairwise(ast.parse(inspect.getsource(owner)).body[0].body)
            if isinstance(node, ast.AnnAssign)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
        }
    text = inspect.getdoc(reference) or ""
    described |= {field.name for field in dataclasses.fields(reference) if f"\n{field.name} : " in text}
    assert {field.name for field in dataclasses.fields(reference) if not field.name.startswith("_")} <= described


def check_parameters(function: Any) -> None:
    text = inspect.getdoc(function) or ""
    assert text, function.__name__
    parameters = [p for p in inspect.signature(inspect.unwrap(function)).parameters if p not in ("self", "cls")]
    for parameter in parameters:
        assert any(f"\n{form}" in text for form in (f"{parameter} : ", f"*{parameter} : ", f"**{parameter}\n")), (
            f"{function.__name__}: {parameter}"
        )
    assert not parameters or "\nParameters\n----------\n" in text
    if inspect.signature(function).return_annotation not in (None, "None"):
        assert "\nReturns\n-------\n" in text, function.__name__
