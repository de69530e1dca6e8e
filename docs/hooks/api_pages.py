"""The API reference: one page for each public name of `steadygaze/__init__.py`."""

from pathlib import Path

import steadygaze
from markdown_text import table
from steadygaze import _CALLABLE_PACKAGES, _MODULES

RETURNED = {
    "Row": "steadygaze.results.row.Row",
    "Verdict": "steadygaze.results.row.Verdict",
    "Evaluation": "steadygaze.results.evaluation.Evaluation",
    "WordWeights": "steadygaze.results.word_weights.WordWeights",
    "Certificates": "steadygaze.audit.certificate.Certificates",
    "SubstitutionCertificates": "steadygaze.results.substitution_certificates.SubstitutionCertificates",
    "SavedExplainer": "steadygaze.estimator.explainer_folder.SavedExplainer",
    "ModelAdapter": "steadygaze.adapters.model_adapter.ModelAdapter",
    "Corpus": "steadygaze.data.corpus.Corpus",
}
"""Classes of results, which no user constructs."""


def public_names() -> dict[str, str]:
    """Public name -> path of the object."""
    names = {name: f"{module}.{name}" for name, module in _MODULES.items()}
    names |= {name: f"steadygaze.{name}.{name}.{name}" for name in _CALLABLE_PACKAGES}
    return {name: names[name] for name in steadygaze.__all__ if name in names}


def pages(_: Path) -> dict[str, str]:
    public = public_names()
    return {
        "api/index.md": _index(public),
        **{f"api/{name}.md": _page(f"sg.{name}", path) for name, path in public.items()},
        **{f"api/{name}.md": _page(name, path) for name, path in RETURNED.items()},
    }


def _page(title: str, path: str) -> str:
    options = ["heading_level: 1", f"heading: {title}", f"toc_label: {title}"]
    return "\n".join(
        [f"---\ntitle: {title}\n---\n", f"::: {path}", "    options:", *(f"      {o}" for o in options), ""]
    )


def _index(public: dict[str, str]) -> str:
    rows = [(f"[`sg.{name}`]({name}.md)", _summary(path)) for name, path in public.items()]
    results = [(f"[`{name}`]({name}.md)", _summary(path)) for name, path in RETURNED.items()]
    return "\n".join(
        [
            "# Python API\n",
            "`import steadygaze as sg` imports no torch. Only the names of this page are public.\n",
            table(("name", "purpose"), rows),
            "## Results\n",
            "Functions and methods return objects of these classes. Do not construct them yourself.\n",
            table(("class", "contents"), results),
        ]
    )


def _summary(path: str) -> str:
    """The first sentence of the docstring."""
    from importlib import import_module

    module, _, name = path.rpartition(".")
    return str(getattr(import_module(module), name).__doc__).split("\n")[0].split("  ")[0]
