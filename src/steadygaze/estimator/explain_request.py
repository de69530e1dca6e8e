"""ExplainRequest: what to explain and how, for every `explain` of Python, the command line and REST."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, ParamSpec, TypeVar

from steadygaze.core.arguments import choice, instance, integer, optional
from steadygaze.core.types import Label
from steadygaze.explainers.class_probability import Output
from steadygaze.models import inference

P = ParamSpec("P")
R = TypeVar("R")
Granularity = Literal["word", "piece", "segment"]
CHECKS = {
    "granularity": choice("word", "piece", "segment"),
    "output": optional(choice("probability", "logit")),
    "settings": optional(instance(Mapping, "a dict")),
    "seed": integer(0),
    "batch_size": integer(1),
}
ENTRY = re.compile(r"^(\w+) : .+(?:\n .+)+", re.MULTILINE)
"""A parameter and its description in a docstring."""
RETURNS = """Returns
-------
Explanation or list of Explanation
    Tokens, character spans, weights, label and probabilities.  An empty text of a list has None, and a warning
    names it."""


@dataclass(frozen=True)
class ExplainRequest:
    """What to explain, and how.

    Parameters
    ----------
    texts : str, (text, question), Example, list, array or column
        One text or pair, or several.
    explainer : str, Explainer, Captum method or fitted explainer, default=None
        A name (`steadygaze list explainers`), an Explainer such as `Lime(samples=5000)`, a result of `fit_explainer`
        for this model, or a method of Captum that explains inputs, as a class or an object.  None: the rationale or
        the attention of a TextClassifier, leave-one-out for one of pairs and for a function, and integrated gradients
        of the logit for other networks.
    target : str or int, default=None
        The explained class; None: the predicted one.  Attention is the same for all classes and accepts none.  For a
        multi-label or regression model: the explained output.
    granularity : str, default="word"
        "word"; "piece" for the subwords of a transformer; "segment" for the parts of the prompt of a language model:
        instruction, examples, text.
    output : str, default=None
        Explain the "probability" or the "logit" of the class; None: the default of the explainer.  A black box has
        logarithms of probabilities.  The value of a regression model is explained in either case.
    settings : dict, default=None
        Settings of the explainer, by name: {"samples": 500}.
    seed : int, default=0
        Random seed of the explainer.
    batch_size : int, default=128
        Texts per batch.
    """

    texts: Any = None
    """None: they follow in chunks."""
    explainer: Any = None
    target: Label | None = None
    granularity: Granularity = "word"
    _: KW_ONLY
    output: Output | None = None
    settings: Mapping[str, Any] | None = None
    seed: int = 0
    batch_size: int = inference.BATCH

    def __post_init__(self) -> None:
        for name, check in CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))


def documented(explain: Callable[P, R]) -> Callable[P, R]:
    """Complete the docstring of a function with the parameters of ExplainRequest; `X` is `texts`."""
    own = inspect.cleandoc(explain.__doc__ or "")
    known = {match[1]: match[0] for match in ENTRY.finditer(f"{inspect.getdoc(ExplainRequest)}\n{own}")}
    known["X"] = known["texts"].replace("texts", "X", 1)
    entries = [known[name] for name in inspect.signature(explain).parameters if name != "self"]
    summary, (_, mark, examples) = own.split("\n\n")[0], own.partition("\n\nExamples\n")
    parameters = "\n".join(["Parameters", "----------", *entries])
    explain.__doc__ = f"{summary}\n\n{parameters}\n\n{RETURNS}{mark}{examples}\n"
    return explain
