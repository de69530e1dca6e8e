"""The examples in the docstrings are true."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import steadygaze

pytestmark = pytest.mark.usefixtures("hasty_judge")
MODULES = [
    module.name
    for module in pkgutil.walk_packages(steadygaze.__path__, "steadygaze.")
    if ">>> " in Path(module.module_finder.find_spec(module.name).origin).read_text(encoding="utf-8")
]


def test_there_are_examples():
    assert {"steadygaze.core.settings", "steadygaze.core.errors", "steadygaze.results.row"} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_every_example_gives_what_it_says(name):
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0
    assert failed == 0
