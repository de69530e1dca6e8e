"""Train text classifiers with stable, faithful explanations, and audit the explanations of any model.

Nothing heavy is imported until it is used: `import steadygaze` loads no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steadygaze.core import __version__

if TYPE_CHECKING:
    from steadygaze.adapters.fit_explainer import fit_explainer as fit_explainer
    from steadygaze.adapters.fit_explainer import load_explainer as load_explainer
    from steadygaze.adapters.load_and_explain import explain as explain
    from steadygaze.adapters.load_and_explain import load as load
    from steadygaze.adapters.load_and_explain import word_weights as word_weights
    from steadygaze.adapters.predict_sentences import predict_sentences as predict_sentences
    from steadygaze.auditing.audit import audit as audit
    from steadygaze.auditing.evaluate import evaluate as evaluate
    from steadygaze.certificates.certify import certify as certify
    from steadygaze.core.errors import UserError as UserError
    from steadygaze.data.corpora import load_corpus as load_corpus
    from steadygaze.data.synonym_groups import SynonymGroups as SynonymGroups
    from steadygaze.estimator.text_classifier import TextClassifier as TextClassifier
    from steadygaze.images.explain_images import explain_images as explain_images
    from steadygaze.images.image_classifier import ImageClassifier as ImageClassifier
    from steadygaze.images.image_explanation import ImageExplanation as ImageExplanation
    from steadygaze.images.image_inputs import load_images as load_images
    from steadygaze.results.explanation import Explanation as Explanation
    from steadygaze.results.report import Report as Report
    from steadygaze.study.python_calls import compare as compare
    from steadygaze.study.python_calls import tune as tune


_MODULES = {  # public name -> its module
    "Explanation": "steadygaze.results.explanation",
    "ImageClassifier": "steadygaze.images.image_classifier",
    "ImageExplanation": "steadygaze.images.image_explanation",
    "Report": "steadygaze.results.report",
    "SynonymGroups": "steadygaze.data.synonym_groups",
    "TextClassifier": "steadygaze.estimator.text_classifier",
    "UserError": "steadygaze.core.errors",
    "audit": "steadygaze.auditing.audit",
    "certify": "steadygaze.certificates.certify",
    "compare": "steadygaze.study.python_calls",
    "evaluate": "steadygaze.auditing.evaluate",
    "explain": "steadygaze.adapters.load_and_explain",
    "explain_images": "steadygaze.images.explain_images",
    "fit_explainer": "steadygaze.adapters.fit_explainer",
    "load": "steadygaze.adapters.load_and_explain",
    "load_corpus": "steadygaze.data.corpora",
    "load_explainer": "steadygaze.adapters.fit_explainer",
    "load_images": "steadygaze.images.image_inputs",
    "predict_sentences": "steadygaze.adapters.predict_sentences",
    "tune": "steadygaze.study.python_calls",
    "word_weights": "steadygaze.adapters.load_and_explain",
}
__all__ = [
    "Explanation",
    "ImageClassifier",
    "ImageExplanation",
    "Report",
    "SynonymGroups",
    "TextClassifier",
    "UserError",
    "__version__",
    "audit",
    "certify",
    "compare",
    "evaluate",
    "explain",
    "explain_images",
    "fit_explainer",
    "load",
    "load_corpus",
    "load_explainer",
    "load_images",
    "predict_sentences",
    "tune",
    "word_weights",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'steadygaze' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
