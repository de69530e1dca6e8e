"""Explanation: a text, its prediction and the weights of its words, for a notebook, a page or a terminal.

Explanations: a list of them, also as a table of pandas.

Drawn by steadygaze/results/highlight.py.  Does not import torch.
"""

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, overload

from steadygaze.core.arguments import argument_error, integer, optional, validated
from steadygaze.core.errors import UserError, one_line, printable
from steadygaze.core.output_paths import write_output
from steadygaze.core.rounding import percent
from steadygaze.core.types import Label, Picked, Span, Unit
from steadygaze.results.data_frame import data_frame
from steadygaze.results.health import HEALTHY, Health, without_health
from steadygaze.results.highlight import (
    UNREAD,
    highlight_html,
    highlight_rich,
    is_truncated,
    legend,
    page,
    total_weight,
)
from steadygaze.results.shade import negligible_text, scale_text, strength, weight_text

if TYPE_CHECKING:
    from typing import SupportsIndex

    from pandas import DataFrame
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema
    from rich.text import Text

MOST_SHOWN = 100
"""Explanations that a notebook shows."""
LABEL = 80
"""Longest label in a terminal, in characters."""
TOP_WORDS = 5
"""Words that are listed."""


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """The prediction of a text and the weights of its words.

    Examples
    --------
    >>> import steadygaze as sg
    >>> def cheerful(texts): return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]
    >>> explanation = sg.explain(cheerful, "a good film", explainer="leave-one-out", classes=["no", "yes"])
    >>> explanation.tokens, explanation.spans
    (('a', 'good', 'film'), ((0, 1), (2, 6), (7, 11)))
    """

    text: str
    """The whole text."""
    tokens: tuple[str, ...]
    """Words of the text, in their original spelling."""
    spans: tuple[Span, ...]
    """First character and end of each token in the text."""
    weights: tuple[float, ...]
    """One per token.  Attention sums to 1; other explainers may be signed."""
    label: Label
    """The predicted class."""
    probabilities: dict[Label, float]
    """Class -> predicted probability."""
    question: str | None = None
    """The question of a pair.  None: a single text."""
    target: Label | None = None
    """The class that is explained.  None: the predicted one."""
    explainer: str = "attention"
    """Name of the explainer."""
    granularity: str = "word"
    """Tokens are words or pieces."""
    read_to: int | None = None
    """The text is truncated at this character.  None: not truncated."""
    rationales: tuple[Span, ...] | None = None
    """A known or human rationale, underlined in the text."""
    bounds: tuple[tuple[float, float], ...] | None = None
    """Lower and upper bound of each weight, if the explainer estimates its uncertainty."""
    selected: bool = False
    """The words with a weight are a selection: all of them are drawn and listed."""
    rationale: tuple[Picked, ...] | None = None
    """The selected spans of a rationalizer: start, end and selection probability."""
    sentences: int | None = None
    """Number of sentences, if the rationalizer selects one of them.  None: it selects words."""
    question_tokens: tuple[str, ...] | None = None
    """Words of the question, if the explainer weights them; attention covers only the text."""
    question_spans: tuple[Span, ...] | None = None
    """First character and end of each word of the question."""
    question_weights: tuple[float, ...] | None = None
    """Weights of the words of the question."""
    reader_accuracy: float | None = None
    """Accuracy of an independent reader that predicts the class from the selected words, over held-out texts.
    Low values mean that the selection leaks the label.  None: not known."""
    arbitrary_selections: tuple[int, int] | None = None
    """Numbers of held-out texts with the predicted class: those whose selection is arbitrary, and all of them.

    A selection is arbitrary if nearly any selection of the text gives this class, and an independent reader does not
    recover the class from the selected words.  None: none, or not known."""
    true_label: Label | None = None
    """The label in the data, if known.  The prediction is wrong if `label` differs from it."""
    value: float | None = None
    """The prediction of a regression model; its `label` is the name of the output."""
    unit: Unit = "relative"
    """The quantity that a weight measures; results/shade.py defines the units and their shades."""
    health: Health = HEALTHY
    """Known-bad states of the model or of the fitted explainer: the weights may then not be reasons."""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise argument_error("text", "a string", self.text)
        if not isinstance(self.probabilities, Mapping):
            raise argument_error("probabilities", "a mapping of labels to numbers", self.probabilities)
        for name in ("tokens", "spans", "weights", "bounds"):
            value: Any = getattr(self, name)
            if not isinstance(value, tuple | list) and not (name == "bounds" and value is None):
                raise argument_error(name, "a tuple", value)
        if not len(self.tokens) == len(self.spans) == len(self.weights):
            sizes = f"{len(self.tokens)} tokens, {len(self.spans)} spans and {len(self.weights)} weights"
            raise UserError(f"Explanation: {sizes}; there must be as many of each")
        if self.bounds is not None and len(self.bounds) != len(self.tokens):
            raise UserError(f"Explanation: {len(self.tokens)} tokens and {len(self.bounds)} bounds")
        parts = self.question_tokens or (), self.question_spans or (), self.question_weights or ()
        if len(set(map(len, parts))) > 1 or (parts[0] and self.question is None):
            raise UserError("Explanation: question_tokens, question_spans and question_weights must be equally many")
        try:
            finite = math.isfinite(sum(self.weights) + sum(parts[2]))
        except (TypeError, OverflowError):
            finite = False
        if not finite:
            raise UserError("Explanation: some weight is not a finite number")

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def question_explanation(self) -> "Explanation | None":
        """The question as an Explanation; None: it has no weights."""
        if self.question is None or self.question_weights is None:
            return None
        return replace(
            self,
            text=self.question,
            tokens=self.question_tokens or (),
            spans=self.question_spans or (),
            weights=self.question_weights,
            question=None,
            question_tokens=None,
            question_spans=None,
            question_weights=None,
            read_to=None,
            rationales=None,
            bounds=None,
            rationale=None,
        )

    @validated(k=optional(integer(0)))
    def top(self, k: int | None = None) -> list[tuple[str, float]]:
        """The top-k tokens by absolute weight.

        Parameters
        ----------
        k : int, default=None
            Number of tokens; None: all selected tokens, or 5 if the explainer selects none.

        Returns
        -------
        list of (str, float)
            Tokens and weights in descending order; ties keep the order of the text.
        """
        return [(self.tokens[i], self.weights[i]) for i in self.top_indices(k)]

    def top_indices(self, k: int | None = None) -> list[int]:
        """The positions of the top-k tokens by absolute weight.

        Parameters
        ----------
        k : int, default=None
            Number of tokens; None: all selected tokens, or 5 if the explainer selects none.

        Returns
        -------
        list of int
            Positions in `tokens`, in the order of `top`.
        """
        default = sum(map(bool, self.weights)) if self.selected else TOP_WORDS
        return heapq.nlargest(default if k is None else k, range(len(self)), key=lambda i: abs(self.weights[i]))

    @property
    def explained_label(self) -> Label:
        """The class that is explained: the target, or the predicted one."""
        return self.label if self.target is None else self.target

    @property
    def is_wrong(self) -> bool:
        """True if the true label is known and not the predicted one."""
        return self.true_label is not None and self.true_label != self.label

    @property
    def caption(self) -> str:
        """What the weights are.  Attention weights are not claims about reasons."""
        if self.rationale is not None:
            unit = "sentence" if self.sentences is not None else self.granularity
            total = self.sentences if self.sentences is not None else len(self)
            selected = 1 if self.sentences is not None else sum(map(bool, self.weights))
            return f"selected, {selected:,} of {total:,} {unit}{'' if total == 1 else 's'}"
        name = f"selected by {self.explainer}" if self.selected else self.explainer
        return "attention weight, neither for nor against" if self.explainer == "attention" else name

    @property
    def negligible(self) -> str:
        """The sentence that no word matters much; '' if some word does."""
        part = self.question_explanation
        weights = self.weights if part is None else (*self.weights, *part.weights)
        return negligible_text(weights, self.unit, total_weight(self, part))

    def shading(self) -> dict[str, Any]:
        """How the words are drawn, for a page of your own.

        Returns
        -------
        dict
            text and question: the strength of the color of each word, from 0 (gray) to 1.  scale: the scale as a
            sentence.  remark: the sentence that no word matters much, or ''.
        """
        part = self.question_explanation
        total = total_weight(self, part)
        strengths = [
            None if text is None else [strength(weight, self.unit, total) for weight in text.weights]
            for text in (self, part)
        ]
        scale = scale_text(self.unit)
        return {"text": strengths[0], "question": strengths[1], "scale": scale, "remark": self.negligible}

    def to_dict(self) -> dict[str, Any]:
        """The explanation as values for JSON.

        Returns
        -------
        dict
            Lists, strings and numbers, ready for JSON.
        """
        return {
            "health": self.health.to_list(),
            "text": self.text,
            "question": self.question,
            "label": self.label,
            "target": self.target,
            "probabilities": {str(label): p for label, p in self.probabilities.items()},
            "tokens": list(self.tokens),
            "spans": list(map(list, self.spans)),
            "weights": list(self.weights),
            "explainer": self.explainer,
            "granularity": self.granularity,
            "read_to": self.read_to,
            "rationales": None if self.rationales is None else list(map(list, self.rationales)),
            "bounds": None if self.bounds is None else list(map(list, self.bounds)),
            "selected": self.selected,
            "rationale": None if self.rationale is None else list(map(list, self.rationale)),
            "question_tokens": None if self.question_tokens is None else list(self.question_tokens),
            "question_spans": None if self.question_spans is None else list(map(list, self.question_spans)),
            "question_weights": None if self.question_weights is None else list(self.question_weights),
            "sentences": self.sentences,
            "reader_accuracy": self.reader_accuracy,
            "arbitrary_selections": None if self.arbitrary_selections is None else list(self.arbitrary_selections),
            "true_label": self.true_label,
            "value": self.value,
            "unit": self.unit,
        }

    def to_json(self) -> bytes:
        """The explanation as one line of JSON, ten times as fast as the module json.

        Returns
        -------
        bytes
            The values of `to_dict`.
        """
        import orjson

        values = {"health": self.health.to_list(), **{name: getattr(self, name) for name in JSON_FIELDS}}
        return orjson.dumps(values, option=orjson.OPT_NON_STR_KEYS)

    def to_pandas(self) -> "DataFrame":
        """The tokens as a table.

        Returns
        -------
        pandas.DataFrame
            One row per token: token, start, end, weight; low and high if there are bounds.
        """
        starts, ends = [start for start, _ in self.spans], [end for _, end in self.spans]
        table = data_frame({"token": self.tokens, "start": starts, "end": ends, "weight": self.weights})
        if self.bounds is None:
            return table
        return table.assign(low=[low for low, _ in self.bounds], high=[high for _, high in self.bounds])

    def to_html(self, path: str | Path | None = None, *, replace: bool = False) -> str:
        """Make one HTML page without scripts or external files.

        Parameters
        ----------
        path : str or Path, default=None
            File to write; None: write nothing.
        replace : bool, default=False
            Overwrite a file that steadygaze did not write.

        Returns
        -------
        str
            The page.
        """
        title = shorten(f"{self.label}: {self.text}", 60, placeholder="…")
        html = page(title, self._repr_html_())
        if path is not None:
            write_output(path, html, replace)
        return html

    def _repr_html_(self) -> str:
        small = '<div style="font-size:0.85em;opacity:0.8">{}</div>'.format
        question = "" if self.question is None else small(f"Question: {escape(self.question)}")
        if (question_part := self.question_explanation) is not None:
            question = small("Question:") + highlight_html(question_part, other=self)
        prediction = f"<div><strong>{escape(str(self.label))}</strong> {escape(self._confidence())}</div>"
        lines = "".join(small(escape(line)) for line in self._lines())
        parts = prediction, question, highlight_html(self, other=question_part), lines
        body = f"{''.join(parts)}{small(legend([self]))}"
        html = f"{self.health.banner}<figure style='margin:0 0 1.5em'>{body}</figure>"
        return html.encode(errors="replace").decode()  # a lone surrogate would stop the notebook's own encoder

    def __rich__(self) -> "Text":
        from rich.text import Text

        output = Text()
        for problem in self.health.lines:
            output.append_text(problem).append("\n")
        if self.question is not None:
            output.append("Question: ", style="italic")
            question_part = self.question_explanation
            output.append_text(
                Text(printable(self.question), "italic")
                if question_part is None
                else highlight_rich(question_part, other=self)
            )
            output.append("\n")
        output.append_text(highlight_rich(self, other=self.question_explanation))
        output.append(f"\n→ {one_line(self.label, LABEL)}", style="bold").append(f" {printable(self._confidence())}")
        for line in self._lines():
            output.append(f"\n{printable(line)}")
        if any(self.weights) and self.unit != "selection":  # the caption says that words are selected
            output.append(f"\n{scale_text(self.unit)}", style="dim")
        return output

    def __str__(self) -> str:
        return self.__rich__().plain

    def __repr__(self) -> str:
        total = total_weight(self, self.question_explanation)
        top = ", ".join(f"{one_line(token, LABEL)} {weight_text(w, self.unit, total)}" for token, w in self.top(3))
        top = top if self.rationale is None else shorten(" · ".join(self._pieces()), 60, placeholder="…")
        text = shorten(self.text, 40, placeholder="…")
        return f"<Explanation {text!r}: {one_line(self.label, LABEL)} {self._confidence()}; {self.explainer}: {top}>"

    def _confidence(self) -> str:
        probability = percent(self.probabilities[self.label], 1) if self.label in self.probabilities else ""
        if self.value is not None:
            probability = f"{self.value:.4g}"
        explained_class = (
            f"(explained: {one_line(self.target, LABEL)})" if self.target not in (None, self.label) else ""
        )
        error = f"✗ wrong: the label is {one_line(self.true_label, LABEL)}" if self.is_wrong else ""
        return " ".join(filter(None, (probability, explained_class, error)))

    def _token_text(self, i: int, total: float) -> str:
        """A word and its weight; selected words have no weight, only an order."""
        if self.selected and self.bounds is None:
            return self.tokens[i]
        weight, *ends = (
            weight_text(w, self.unit, total) for w in (self.weights[i], *(self.bounds[i] if self.bounds else ()))
        )
        return f"{self.tokens[i]} {weight}" + (f" [{', '.join(ends)}]" if ends else "")

    def _pieces(self) -> list[str]:
        """The selected spans."""
        return [f"“{' '.join(self.text[start:end].split())}”" for start, end, _ in self.rationale or ()]

    @property
    def _nothing(self) -> str:
        return "no word has a weight" if self.rationale is None else "nothing"

    def _lines(self) -> list[str]:
        """The meaning of the colors, in words."""
        question_part = self.question_explanation
        total = total_weight(self, question_part)
        top = (
            [self._token_text(i, total) for i in self.top_indices() if self.weights[i]]
            if self.rationale is None
            else self._pieces()
        )
        lines = [f"{self.caption}: {' · '.join(top) or self._nothing}"]
        if question_part is not None:
            words = [
                question_part._token_text(i, total) for i in question_part.top_indices() if question_part.weights[i]
            ]
            lines.append(f"question: {' · '.join(words) or question_part._nothing}")
        if self.negligible:
            lines.append(self.negligible)
        if self.rationales is not None:
            reason = [" ".join(self.text[start:end].split()) for start, end in self.rationales]
            lines.append(f"human rationale: {' · '.join(reason) or 'none'}")
        if is_truncated(self):
            lines.append(f"{UNREAD} (from character {self.read_to} of {len(self.text)})")
        return lines


JSON_FIELDS = tuple(name for name in Explanation.__slots__ if name != "health")


class Explanations(list[Explanation]):
    """A list of explanations; slices are Explanations, too.  The results of `explain` have None for an empty text."""

    @overload
    def __getitem__(self, index: "SupportsIndex") -> Explanation: ...
    @overload
    def __getitem__(self, index: slice) -> "Explanations": ...
    def __getitem__(self, index: Any) -> Any:
        items = super().__getitem__(index)
        return Explanations(items) if isinstance(index, slice) else items

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        """Read the explanations of a saved report."""
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(cls, handler.generate_schema(list[Explanation]))

    def to_pandas(self) -> "DataFrame":
        """One row per text and token: text (its position), label, target, explainer, token, start, end, weight.

        `label` is the predicted class, `target` the explained one.  Bounds of the weights are low and high, if known.
        """
        rows = [
            (i, e.label, e.explained_label, e.explainer, token, *span, weight, *bounds)
            for i, e in self._numbered()
            for token, span, weight, bounds in zip(
                e.tokens, e.spans, e.weights, e.bounds or [(None, None)] * len(e), strict=True
            )
        ]
        names = ["text", "label", "target", "explainer", "token", "start", "end", "weight", "low", "high"]
        table = data_frame(rows, names)
        return table if any(e.bounds is not None for _, e in self._numbered()) else table.drop(columns=["low", "high"])

    @property
    def health(self) -> Health:
        """Known-bad states of the model or of the fitted explainer."""
        return sum((e.health for _, e in self._numbered()), HEALTHY)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.health.lines), repr(self)])

    def _repr_html_(self) -> str:
        more = len(self) - MOST_SHOWN
        note = f"<div>… and {more:,} more</div>" if more > 0 else ""
        shown = self[:MOST_SHOWN]._numbered()
        return self.health.banner + "".join(without_health(e)._repr_html_() for _, e in shown) + note

    def _numbered(self) -> "list[tuple[int, Explanation]]":
        """The explanations and their positions, without those of empty texts."""
        items: list[Explanation | None] = [*self]
        return [(i, e) for i, e in enumerate(items) if e is not None]
