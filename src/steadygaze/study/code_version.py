"""A digest of the code that determines results, so that a finished cell is reused only if its code is unchanged.

The digest covers the packages that train, explain and measure, and the modules of this package, which choose texts and
measure models.  Docstrings, comment lines and blank lines do not count.  Finished cells therefore remain valid after an
edit of those, and after a change to reports, commands or published numbers.
A technique, an explainer or a property of the user adds the digest of its file, without the modules that it imports.
"""

import sys
from functools import cache
from pathlib import Path
from uuid import uuid4

import steadygaze
from steadygaze.core.source_digest import LENGTH, class_digest, source_digest
from steadygaze.explainers import own_explainers
from steadygaze.properties import own_properties
from steadygaze.techniques import own_techniques

PACKAGES = (
    "core",
    "data",
    "perturbations",
    "models",
    "techniques",
    "training",
    "explainers",
    "results",
    "estimator",
    "adapters",
    "properties",
    "auditing",
    "certificates",
    "bundle",
)
"""Every package that a model or a score depends on; a package imports those before it."""


@cache
def code_version() -> str:
    """The digest of the installed code."""
    root = Path(steadygaze.__file__).parent
    files = [path for package in PACKAGES for path in sorted((root / package).rglob("*"))]
    files += sorted(Path(__file__).parent.glob("*.py"))
    return source_digest(root, [path for path in files if path.is_file() and path.suffix != ".pyc"])


def technique_source(name: str) -> dict[str, str]:
    """The digest of the file of a user's technique; empty for our own, which the code version covers."""
    own = own_techniques([name])
    return {"source": _file_digest(own[name])} if own else {}


def explainer_source(name: str) -> dict[str, str]:
    """The same for an explainer."""
    own = own_explainers([name])
    return {"explainer_source": _file_digest(own[name])} if own else {}


def property_sources() -> dict[str, list[str]]:
    """The digests of the files of a user's properties."""
    modules = {function.__module__ for item in own_properties().values() for function in item.own_functions}
    return {"property_sources": sorted(map(_module_digest, modules))} if modules else {}


def _module_digest(name: str) -> str:
    path = getattr(sys.modules.get(name), "__file__", None)
    return source_digest(Path(path).parent, [Path(path)]) if path else uuid4().hex[:LENGTH]


@cache
def _file_digest(kind: type) -> str:
    """The digest of the file of a class; a class without a file, as in a notebook, has a new one in every process."""
    return class_digest(kind) or uuid4().hex[:LENGTH]
