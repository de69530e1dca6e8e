"""Train classifiers whose highlighted words you can believe, and measure how far you may believe anybody else's.

Nothing heavy is imported until it is used: `import steadygaze` loads no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steadygaze.audit.audit import audit as audit
    from steadygaze.audit.certificate import certify as certify
    from steadygaze.corpus import load_corpus as load_corpus
    from steadygaze.errors import UserError as UserError
    from steadygaze.estimator import TextClassifier as TextClassifier
    from steadygaze.estimator import load as load
    from steadygaze.explanation import Explanation as Explanation

__version__ = "0.1.0"

_HOMES = {  # public name -> the module it lives in
    "Explanation": "steadygaze.explanation",
    "TextClassifier": "steadygaze.estimator",
    "UserError": "steadygaze.errors",
    "certify": "steadygaze.audit.certificate",
    "load": "steadygaze.estimator",
    "load_corpus": "steadygaze.corpus",
}
_ROOMS = ("audit",)  # a room of that name can be called
__all__ = ["Explanation", "TextClassifier", "UserError", "__version__", "audit", "certify", "load", "load_corpus"]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"steadygaze.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'steadygaze' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
