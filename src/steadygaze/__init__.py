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
    from steadygaze.explain_fitting import explain_fit as explain_fit
    from steadygaze.explain_fitting import load_explainer as load_explainer
    from steadygaze.explanation import Explanation as Explanation
    from steadygaze.images.classifier import ImageClassifier as ImageClassifier
    from steadygaze.images.explanation import ImageExplanation as ImageExplanation
    from steadygaze.images.idx import load_images as load_images
    from steadygaze.loading import load as load

__version__ = "0.1.0"

_HOMES = {  # public name -> the module it lives in
    "Explanation": "steadygaze.explanation",
    "ImageClassifier": "steadygaze.images.classifier",
    "ImageExplanation": "steadygaze.images.explanation",
    "TextClassifier": "steadygaze.estimator",
    "UserError": "steadygaze.errors",
    "certify": "steadygaze.audit.certificate",
    "explain_fit": "steadygaze.explain_fitting",
    "load": "steadygaze.loading",
    "load_corpus": "steadygaze.corpus",
    "load_explainer": "steadygaze.explain_fitting",
    "load_images": "steadygaze.images.idx",
}
_ROOMS = ("audit",)  # a room of that name can be called
__all__ = [
    "Explanation",
    "ImageClassifier",
    "ImageExplanation",
    "TextClassifier",
    "UserError",
    "__version__",
    "audit",
    "certify",
    "explain_fit",
    "load",
    "load_corpus",
    "load_explainer",
    "load_images",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"steadygaze.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'steadygaze' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
