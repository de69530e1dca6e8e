"""Texts before and after a perturbation, and excerpts of long texts around the words that matter."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise

from steadygaze.core.types import Picked, Span
from steadygaze.results.explanation import Explanation
from steadygaze.results.row import Shift

LONG = 80
"""Texts with more words are shown as excerpts."""
AROUND = 9
"""Words shown on either side of a changed or top-weighted word."""
GAP = " […] "


@dataclass(frozen=True, slots=True)
class TextPair:
    """A text before and after a perturbation; `rationales` are the substituted words."""

    before: Explanation
    after: Explanation
    shortened: bool


def text_pair(shift: Shift) -> TextPair:
    old, new = changed_words(shift.before.tokens, shift.after.tokens)
    around = [_around(shift.before, old), _around(shift.after, new)]
    if len(shift.before) == len(shift.after):  # the same positions in both, for comparison
        around = [sorted({*around[0], *around[1]})] * 2
    before, after = _excerpt(shift.before, around[0], old), _excerpt(shift.after, around[1], new)
    shortened = len(before) < len(shift.before) or len(after) < len(shift.after)
    return TextPair(before, after, shortened)


def changed_words(before: Sequence[str], after: Sequence[str]) -> tuple[list[int], list[int]]:
    """Positions of the words that differ.

    >>> changed_words(["a", "fine", "film"], ["a", "good", "film"])
    ([1], [1])
    >>> changed_words(["a", "fine", "film"], ["a", "very", "good", "film"])
    ([1], [1, 2])
    """
    if len(before) == len(after):
        positions = [i for i, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
        return positions, positions
    steps = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    changes = [(range(i, j), range(k, m)) for kind, i, j, k, m in steps if kind != "equal"]
    return [i for old, _ in changes for i in old], [i for _, new in changes for i in new]


def _around(e: Explanation, changed_positions: Sequence[int]) -> list[int]:
    """The words to show: all of a short text, else the top-weighted and substituted words and their neighbors."""
    if len(e) <= LONG:
        return list(range(len(e)))
    centers = [*e.top_indices(), *changed_positions]
    return sorted({i for c in centers for i in range(max(0, c - AROUND), min(len(e), c + AROUND + 1))})


def _excerpt(e: Explanation, positions: Sequence[int], changed_positions: Sequence[int]) -> Explanation:
    """The text of these words, with GAP for omitted words."""
    whole = len(positions) == len(e)
    text, spans = (e.text, list(e.spans)) if whole else _joined(e, positions)
    marks = tuple(span for i, span in zip(positions, spans, strict=True) if i in set(changed_positions))
    return replace(
        e,
        text=text,
        tokens=tuple(e.tokens[i] for i in positions),
        spans=tuple(spans),
        weights=tuple(e.weights[i] for i in positions),
        rationales=marks or None,
        read_to=e.read_to if whole else None,
        rationale=e.rationale if whole else _selected_spans(e, positions, spans),
    )


def excerpt(e: Explanation) -> Explanation:
    """A long text around its top-weighted words and its rationale."""
    if len(e) <= LONG:
        return e
    rationale = [
        i
        for i, (start, end) in enumerate(e.spans)
        if any(start < stop and begin < end for begin, stop in e.rationales or ())
    ]
    short = _excerpt(e, _around(e, rationale), rationale)
    return replace(short, rationales=_runs(short.text, short.rationales or ()) or None)


def _runs(text: str, spans: Sequence[Span]) -> tuple[Span, ...]:
    """Merge spans that only white space separates.

    >>> _runs("very good , it is", [(0, 4), (5, 9), (15, 17)])
    ((0, 9), (15, 17))
    """
    runs: list[Span] = []
    for start, end in spans:
        if runs and not text[runs[-1][1] : start].strip():
            runs[-1] = runs[-1][0], end
        else:
            runs.append((start, end))
    return tuple(runs)


def _selected_spans(e: Explanation, positions: Sequence[int], spans: Sequence[Span]) -> tuple[Picked, ...] | None:
    """The rationale in the excerpt, which contains all of it."""
    if e.rationale is None:
        return None
    starts = {e.spans[i][0]: start for i, (start, _) in zip(positions, spans, strict=True)}
    ends = {e.spans[i][1]: end for i, (_, end) in zip(positions, spans, strict=True)}
    return tuple((starts[start], ends[end], probability) for start, end, probability in e.rationale)


def _joined(e: Explanation, positions: Sequence[int]) -> tuple[str, list[Span]]:
    breaks = [0, *(j for j, (a, b) in enumerate(pairwise(positions), 1) if b > a + 1), len(positions)]
    text, spans = "", []
    for start, end in pairwise(breaks):
        run = positions[start:end]
        begin = e.spans[run[0]][0]
        text += (GAP if text else GAP.lstrip()) if run[0] > 0 else ""
        spans += [(len(text) + a - begin, len(text) + b - begin) for a, b in (e.spans[i] for i in run)]
        text += e.text[begin : e.spans[run[-1]][1]]
    return text + (GAP if positions[-1] < len(e) - 1 or e.read_to is not None else ""), spans
