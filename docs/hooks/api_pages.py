"""The API reference: one page for each public name of `steadygaze/__init__.py`."""

from pathlib import Path

import steadygaze
from markdown_text import table
from steadygaze import _MODULES

RETURNED = {
    "Row": "steadygaze.results.row.Row",
    "Verdict": "steadygaze.results.row.Verdict",
    "Evaluation": "steadygaze.results.evaluation.Evaluation",
    "SentencePredictions": "steadygaze.results.sentence_predictions.SentencePredictions",
    "WordWeights": "steadygaze.results.word_weights.WordWeights",
    "Certificates": "steadygaze.certificates.certificate.Certificates",
    "SubstitutionCertificates": "steadygaze.results.substitution_certificates.SubstitutionCertificates",
    "SoftStabilities": "steadygaze.results.soft_stability.SoftStabilities",
    "SavedExplainer": "steadygaze.estimator.explainer_folder.SavedExplainer",
    "ModelAdapter": "steadygaze.adapters.model_adapter.ModelAdapter",
    "Corpus": "steadygaze.data.corpus.Corpus",
}
"""Classes of results, which no user constructs."""
EXTENSIONS = {
    "TECHNIQUES": "steadygaze.techniques.TECHNIQUES",
    "Technique": "steadygaze.techniques.technique.Technique",
    "LossContext": "steadygaze.techniques.technique.LossContext",
    "Stage": "steadygaze.techniques.technique.Stage",
    "Player": "steadygaze.techniques.technique.Player",
    "CachedTargets": "steadygaze.techniques.technique.CachedTargets",
    "Vanilla": "steadygaze.techniques.vanilla.Vanilla",
    "EXPLAINERS": "steadygaze.explainers.EXPLAINERS",
    "Explainer": "steadygaze.explainers.explainer.Explainer",
    "Saliency": "steadygaze.explainers.explainer.Saliency",
    "inference": "steadygaze.models.inference.inference",
    "with_gradients": "steadygaze.models.inference.with_gradients",
    "PROPERTIES": "steadygaze.properties.PROPERTIES",
    "Property": "steadygaze.properties.property.Property",
    "Advice": "steadygaze.results.advice.Advice",
    "AdviceKind": "steadygaze.results.advice.AdviceKind",
    "Check": "steadygaze.properties.property.Check",
    "Rule": "steadygaze.properties.property.Rule",
    "Threshold": "steadygaze.properties.property.Threshold",
    "Measure": "steadygaze.properties.measures.measure.Measure",
    "settings": "steadygaze.core.settings.settings",
    "SearchRange": "steadygaze.core.search_space.SearchRange",
    "SearchChoice": "steadygaze.core.search_space.SearchChoice",
    "RandomKey": "steadygaze.core.random_key.RandomKey",
    "SYNONYMS": "steadygaze.data.planted.SYNONYMS",
}
"""Names for techniques and explainers of a user's own -> path of the object."""
OWN_TECHNIQUES = """
## Techniques of your own

Pass a name that your module registers, or an instance of your class, as `technique=`:
[Write your own technique](../how-to/own-technique.md).
The [names for it](index.md#for-techniques-and-explainers-of-your-own) are part of this reference.
"""
DATA = {
    "TECHNIQUES": 'Techniques by name; `TECHNIQUES["name"] = Class` registers your own.',
    "EXPLAINERS": 'Explainers by name; `EXPLAINERS["name"] = Class` registers your own.',
    "PROPERTIES": 'Properties by name; `PROPERTIES["name"] = Property(...)` registers your own.',
    "SYNONYMS": "Synonyms of the words of the generated corpora, for examples.",
}
"""Purpose of the extension names that are values, which have no docstring at run time."""
IMPORTED = {
    "steadygaze.core.settings.Field": (
        "[`Field`](https://docs.pydantic.dev/latest/concepts/fields/)",
        "Limits of a setting, such as `Field(ge=0)`; it is that of pydantic.",
    ),
    "steadygaze.properties.audit_case.AuditCase": (
        "[`AuditCase`](../how-to/own-property.md)",
        "The audited model with its texts and the cached weights of its explainers: `gather`, `saliency`, `rows`.",
    ),
    "steadygaze.properties.audit_case.Finding": (
        "[`Finding`](../how-to/own-property.md)",
        "The values of a measure for each text, or the reason why there are none.",
    ),
    "steadygaze.results.comparison.Column": (
        "[`Column`](../how-to/own-property.md)",
        "A column of a comparison: row, title, sentence, better direction.",
    ),
    "steadygaze.transformers.StableTrainer": (
        "[`StableTrainer`](../how-to/train-with-trainer.md)",
        "A `transformers.Trainer` with a technique and synonym groups.",
    ),
    "steadygaze.core.types.Batch": (
        "[`Batch`](../how-to/own-property.md)",
        "Texts of one forward pass: `ids` and `mask`, (B,T).",
    ),
    "steadygaze.core.maths.distributions.normalize": (
        "[`normalize`](../how-to/own-property.md)",
        "Absolute weights over their sum.  (…,T), (…,T) -> (…,T)",
    ),
    "steadygaze.properties.audit_case.Rows": (
        "[`Rows`](https://numpy.org/doc/stable/reference/typing.html#numpy.typing.NDArray)",
        "Indices of texts: an array of whole numbers.",
    ),
}
"""Names for extensions that another page documents: link and purpose."""


def public_names() -> dict[str, str]:
    """Public name -> path of the object."""
    names = {name: f"{module}.{name}" for name, module in _MODULES.items()}
    return {name: names[name] for name in steadygaze.__all__ if name in names}


def pages(_: Path) -> dict[str, str]:
    public = public_names()
    return {
        "api/index.md": _index(public),
        **{f"api/{name}.md": _page(f"sg.{name}", path) for name, path in public.items()},
        **{f"api/{name}.md": _page(name, path) for name, path in RETURNED.items()},
        **{f"api/{name}.md": _page(name, path) + _import(path) for name, path in EXTENSIONS.items()},
        "api/TextClassifier.md": _page("sg.TextClassifier", public["TextClassifier"]) + OWN_TECHNIQUES,
    }


def _page(title: str, path: str) -> str:
    options = ["heading_level: 1", f"heading: {title}", f"toc_label: {title}"]
    return "\n".join(
        [f"---\ntitle: {title}\n---\n", f"::: {path}", "    options:", *(f"      {o}" for o in options), ""]
    )


def _import(path: str) -> str:
    module, _, name = path.rpartition(".")
    return f"\n## Import of {name}\n\n```python\nfrom {module} import {name}\n```\n"


def _index(public: dict[str, str]) -> str:
    rows = [(f"[`sg.{name}`]({name}.md)", _summary(path)) for name, path in public.items()]
    results = [(f"[`{name}`]({name}.md)", _summary(path)) for name, path in RETURNED.items()]
    return "\n".join(
        [
            "# Python API\n",
            "`import steadygaze as sg` imports no torch. Only the names of this page are public: others can change in "
            "any version.\n",
            table(("name", "purpose"), rows),
            "## Results\n",
            "Functions and methods return objects of these classes. Do not construct them yourself.\n",
            table(("class", "contents"), results),
            "## For techniques and explainers of your own\n",
            "These names are supported for extensions: the changelog lists every change of them. Import them from "
            "their module. [Write your own technique](../how-to/own-technique.md) and "
            "[Write your own explainer or measure](../how-to/own-explainer.md) use them.\n",
            table(("name", "module", "purpose"), _extension_rows()),
        ]
    )


def _extension_rows() -> list[tuple[str, str, str]]:
    own = [
        (f"[`{name}`]({name}.md)", f"`{path.rpartition('.')[0]}`", DATA.get(name) or _summary(path))
        for name, path in EXTENSIONS.items()
    ]
    others = [(link, f"`{path.rpartition('.')[0]}`", purpose) for path, (link, purpose) in IMPORTED.items()]
    return own + others


def _summary(path: str) -> str:
    """The first sentence of the docstring."""
    from importlib import import_module

    module, _, name = path.rpartition(".")
    return str(getattr(import_module(module), name).__doc__).split("\n")[0].split("  ")[0]
