"""Two texts side by side: which words differ, and only the parts of long texts that matter."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise

from steadygaze.explanation import Explanation
from steadygaze.report.report import Shift
from steadygaze.types import Picked, Span

LONG = 80
"""Words from which on a text is shown in parts: nobody reads it twice to find three words."""
AROUND = 9
"""Words shown on either side of one that matters."""
GAP = " […] "


@dataclass(frozen=True, slots=True)
class Pair:
    """A text before and after, as a page shows it: `evidence` is what was exchanged."""

    before: Explanation
    after: Explanation
    exchanged: bool
    shortened: bool


def pair(shift: Shift) -> Pair:
    old, new = changed(shift.before.tokens, shift.after.tokens)
    around = [_around(shift.before, old), _around(shift.after, new)]
    if len(shift.before) == len(shift.after):  # the same places in both, so that the eye can compare
        around = [sorted({*around[0], *around[1]})] * 2
    before, after = _excerpt(shift.before, around[0], old), _excerpt(shift.after, around[1], new)
    shortened = len(before) < len(shift.before) or len(after) < len(shift.after)
    return Pair(before, after, bool(old or new), shortened)


def changed(before: Sequence[str], after: Sequence[str]) -> tuple[list[int], list[int]]:
    """Which words of each are not in the other at that place.

    >>> changed(["a", "fine", "film"], ["a", "good", "film"])
    ([1], [1])
    >>> changed(["a", "fine", "film"], ["a", "very", "good", "film"])
    ([1], [1, 2])
    """
    if len(before) == len(after):
        places = [i for i, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]
        return places, places
    steps = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    moved = [(range(i, j), range(k, m)) for kind, i, j, k, m in steps if kind != "equal"]
    return [i for old, _ in moved for i in old], [i for _, new in moved for i in new]


def _around(e: Explanation, exchanged: Sequence[int]) -> list[int]:
    """The words to show: all of a short text; of a long one the heaviest, the exchanged and their neighbours."""
    if len(e) <= LONG:
        return list(range(len(e)))
    centres = [*e.heaviest(), *exchanged]
    return sorted({i for c in centres for i in range(max(0, c - AROUND), min(len(e), c + AROUND + 1))})


def _excerpt(e: Explanation, kept: Sequence[int], exchanged: Sequence[int]) -> Explanation:
    """The text of these words alone, with a sign where something was left out."""
    whole = len(kept) == len(e)
    text, spans = (e.text, list(e.spans)) if whole else _joined(e, kept)
    marks = tuple(span for i, span in zip(kept, spans, strict=True) if i in set(exchanged))
    return replace(
        e,
        text=text,
        tokens=tuple(e.tokens[i] for i in kept),
        spans=tuple(spans),
        weights=tuple(e.weights[i] for i in kept),
        evidence=marks or None,
        read_to=e.read_to if whole else None,
        rationale=e.rationale if whole else _moved(e, kept, spans),
    )


def _moved(e: Explanation, kept: Sequence[int], spans: Sequence[Span]) -> tuple[Picked, ...] | None:
    """What was selected, where it stands among these words: all of it is among them."""
    if e.rationale is None:
        return None
    starts = {e.spans[i][0]: start for i, (start, _) in zip(kept, spans, strict=True)}
    ends = {e.spans[i][1]: end for i, (_, end) in zip(kept, spans, strict=True)}
    return tuple((starts[start], ends[end], chance) for start, end, chance in e.rationale)


def _joined(e: Explanation, kept: Sequence[int]) -> tuple[str, list[Span]]:
    breaks = [0, *(j for j, (a, b) in enumerate(pairwise(kept), 1) if b > a + 1), len(kept)]
    text, spans = "", []
    for start, end in pairwise(breaks):
        run = kept[start:end]
        begin = e.spans[run[0]][0]
        text += (GAP if text else GAP.lstrip()) if run[0] > 0 else ""
        spans += [(len(text) + a - begin, len(text) + b - begin) for a, b in (e.spans[i] for i in run)]
        text += e.text[begin : e.spans[run[-1]][1]]
    return text + (GAP if kept[-1] < len(e) - 1 or e.read_to is not None else ""), spans
