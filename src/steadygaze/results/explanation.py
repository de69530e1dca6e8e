"""Explanation: one text, what was predicted of it and how much each word weighed, for a notebook, a page or a terminal.

How it is drawn is said in steadygaze/results/highlight.py.  No torch here.
"""

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from steadygaze.core.arguments import argument_error, integer, optional, validated
from steadygaze.core.errors import UserError, one_line, printable
from steadygaze.core.output_paths import write_output
from steadygaze.core.types import Label, Picked, Span
from steadygaze.results.highlight import UNREAD, highlight_html, highlight_rich, is_truncated, legend, page

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.text import Text


LABEL = 80
"""Characters shown of a label in a terminal."""
FEW = 5
"""Words that are listed, where no more are selected."""


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """What was predicted of a text, and what an explainer says of each of its words."""

    text: str
    tokens: tuple[str, ...]
    """Words of the user's own text, in its own spelling."""
    spans: tuple[Span, ...]
    weights: tuple[float, ...]
    """One per token.  Attention sums to 1; other explainers may be signed."""
    label: Label
    probabilities: dict[Label, float]
    question: str | None = None
    target: Label | None = None
    """The class that is explained.  None: the predicted one."""
    explainer: str = "attention"
    granularity: str = "word"
    read_to: int | None = None
    """Everything from this character on was cut off and got no weight.  None: the whole text was read."""
    rationales: tuple[Span, ...] | None = None
    """A known or human rationale, drawn beside the weights."""
    bounds: tuple[tuple[float, float], ...] | None = None
    """Between which the weight of each token is, by an explainer that says how sure it is."""
    selected: bool = False
    """Whether the words that have any weight are a selection: all of it is drawn and listed, however little one has."""
    rationale: tuple[Picked, ...] | None = None
    """What a model selected of the text, piece by piece: from, to, and how probable its words were to be selected."""
    question_tokens: tuple[str, ...] | None = None
    """Words of the question, where the explainer weighs them; attention lies on the text alone."""
    question_spans: tuple[Span, ...] | None = None
    question_weights: tuple[float, ...] | None = None
    reader_accuracy: float | None = None
    """How often an independent reader recovers the class from the selected words, over held-out texts of the explainer
    or the rationalizer, not of this text.  Low values mean that the selection leaks the label.  None: not known."""

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
        asked = self.question_tokens or (), self.question_spans or (), self.question_weights or ()
        if len(set(map(len, asked))) > 1 or (asked[0] and self.question is None):
            raise UserError("Explanation: question_tokens, question_spans and question_weights must be equally many")
        try:
            finite = math.isfinite(sum(self.weights) + sum(asked[2]))
        except (TypeError, OverflowError):
            finite = False
        if not finite:
            raise UserError("Explanation: some weight is not a finite number")

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def question_explanation(self) -> "Explanation | None":
        """The question as a text of its own, with its weights; None: it has none."""
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
        """The k heaviest tokens, whatever their sign; of equals the earlier first.  None: all selected ones, or 5."""
        return [(self.tokens[i], self.weights[i]) for i in self.top_indices(k)]

    def top_indices(self, k: int | None = None) -> list[int]:
        """Where those tokens stand, heaviest first."""
        usual = sum(map(bool, self.weights)) if self.selected else FEW
        return heapq.nlargest(usual if k is None else k, range(len(self)), key=lambda i: abs(self.weights[i]))

    @property
    def caption(self) -> str:
        """What the weights are.  Attention is no claim about reasons: it is what the decoder was given of each word."""
        if self.rationale is not None:
            return "selected, with probability"
        own = f"selected by {self.explainer}" if self.selected else self.explainer
        return "share of the attention" if self.explainer == "attention" else own

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON: lists, strings and numbers."""
        return {
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
            "reader_accuracy": self.reader_accuracy,
        }

    def to_json(self) -> bytes:
        """The same as one line of JSON, in a tenth of the time that `json` takes."""
        import orjson

        return orjson.dumps(self, option=orjson.OPT_NON_STR_KEYS)

    def to_pandas(self) -> "DataFrame":
        """One row per token: token, start, end, weight; low and high where there are bounds."""
        try:
            import pandas
        except ImportError:
            raise UserError("to_pandas() needs pandas, which is not installed: pip install pandas.") from None
        starts, ends = [start for start, _ in self.spans], [end for _, end in self.spans]
        found = pandas.DataFrame({"token": self.tokens, "start": starts, "end": ends, "weight": self.weights})
        if self.bounds is None:
            return found
        return found.assign(low=[low for low, _ in self.bounds], high=[high for _, high in self.bounds])

    def to_html(self, path: str | Path | None = None, *, replace: bool = False) -> str:
        """A whole page that loads nothing and runs nothing; written to `path` if there is one."""
        title = shorten(f"{self.label}: {self.text}", 60, placeholder="…")
        html = page(title, self._repr_html_())
        if path is not None:
            write_output(path, html, replace)
        return html

    def _repr_html_(self) -> str:
        small = '<div style="font-size:0.85em;opacity:0.8">{}</div>'.format
        asked = "" if self.question is None else small(f"Question: {escape(self.question)}")
        if (own := self.question_explanation) is not None:
            asked = small("Question:") + highlight_html(own, beside=self)
        verdict = f"<div><strong>{escape(str(self.label))}</strong> {escape(self._sureness())}</div>"
        lines = "".join(small(escape(line)) for line in self._lines())
        body = f"{verdict}{asked}{highlight_html(self, beside=own)}{lines}{small(legend([self]))}"
        html = f"<figure style='margin:0 0 1.5em'>{body}</figure>"
        return html.encode(errors="replace").decode()  # a lone surrogate would stop the notebook's own encoder

    def __rich__(self) -> "Text":
        from rich.text import Text

        drawn = Text()
        if self.question is not None:
            drawn.append("Question: ", style="italic")
            own = self.question_explanation
            drawn.append_text(
                Text(printable(self.question), "italic") if own is None else highlight_rich(own, beside=self)
            )
            drawn.append("\n")
        drawn.append_text(highlight_rich(self, beside=self.question_explanation))
        drawn.append(f"\n→ {one_line(self.label, LABEL)}", style="bold").append(f" {printable(self._sureness())}")
        for line in self._lines():
            drawn.append(f"\n{printable(line)}")
        return drawn

    def __str__(self) -> str:
        return self.__rich__().plain

    def __repr__(self) -> str:
        top = ", ".join(f"{one_line(token, LABEL)} {weight:.3f}" for token, weight in self.top(3))
        top = top if self.rationale is None else shorten(" · ".join(self._pieces()), 60, placeholder="…")
        text = shorten(self.text, 40, placeholder="…")
        return f"<Explanation {text!r}: {one_line(self.label, LABEL)} {self._sureness()}; {self.explainer}: {top}>"

    def _sureness(self) -> str:
        sure = f"{self.probabilities[self.label]:.1%}" if self.label in self.probabilities else ""
        other = f"(explained: {one_line(self.target, LABEL)})" if self.target not in (None, self.label) else ""
        return f"{sure} {other}".strip()

    def _said(self, i: int) -> str:
        """A word and its number; a selector's are no more than how sure it was, and the words are in that order."""
        if self.bounds is not None:
            return f"{self.tokens[i]} {self.weights[i]:.3f} [{self.bounds[i][0]:.3f}, {self.bounds[i][1]:.3f}]"
        return self.tokens[i] if self.selected else f"{self.tokens[i]} {self.weights[i]:.3f}"

    def _pieces(self) -> list[str]:
        """What was selected, as it stands in the text, each with its number."""
        return [f"“{' '.join(self.text[a:b].split())}” {chance:.3f}" for a, b, chance in self.rationale or ()]

    @property
    def _nothing(self) -> str:
        return "no word has any weight" if self.rationale is None else "nothing"

    def _lines(self) -> list[str]:
        """What the colours say, in words: it must be there without them too."""
        top = (
            [self._said(i) for i in self.top_indices() if self.weights[i]] if self.rationale is None else self._pieces()
        )
        lines = [f"{self.caption}: {' · '.join(top) or self._nothing}"]
        if (own := self.question_explanation) is not None:
            asked = [own._said(i) for i in own.top_indices() if own.weights[i]]
            lines.append(f"of the question: {' · '.join(asked) or own._nothing}")
        if self.rationales is not None:
            reason = [" ".join(self.text[start:end].split()) for start, end in self.rationales]
            lines.append(f"known reason: {' · '.join(reason) or 'none'}")
        if is_truncated(self):
            lines.append(f"{UNREAD} (from character {self.read_to} of {len(self.text)})")
        return lines
