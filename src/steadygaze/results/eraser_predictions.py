"""Explanations as ERASER's predictions, one a line, which its own scorer reads.

    annotation_id, classification, classification_scores
    rationales     for each document of the text:
        docid
        soft_rationale_predictions    a weight for each of its tokens: what lies between white space
        hard_rationale_predictions    [{"start_token", "end_token"}, …]: the heaviest tokens, neighbours in one span

A word of ours belongs to the token in which it begins: "film." has the weight of "film" and of "." together.  The hard
rationale is the heaviest `share` of all tokens of the text, at least one, and none that speaks against the label; of a
model that selects what it reads, what it selected.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.atomic_files import new_file
from steadygaze.core.errors import UserError
from steadygaze.core.types import Span
from steadygaze.data.eraser import annotations, is_eraser
from steadygaze.data.rationale_spans import words
from steadygaze.data.tables import NoColumn
from steadygaze.data.user_files import stream
from steadygaze.results.explanation import Explanation

SHARE = 0.2
Named = tuple[str, Mapping[str, Span]]
"""An annotation's name, and which characters of its text each document is; none: the text is one, of the same name."""


def write_predictions(path: Path, found: Iterable[Explanation], named: Iterable[Named], share: float = SHARE) -> int:
    """How many were written."""
    import orjson

    if not 0 < share <= 1:
        raise UserError(f"the share of tokens in a hard rationale must be above 0 and at most 1, found {share}")
    written = 0
    with new_file(path) as new, new.open("wb") as file:
        for explanation, (name, parts) in zip(found, named, strict=False):  # numbers never end
            file.write(orjson.dumps(prediction(explanation, name, parts, share)) + b"\n")
            written += 1
    return written


def names(file: Path, text: Sequence[str] = ("text",), drop_empty: bool = False) -> Iterator[Named]:
    """Of the texts that `stream` reads from a file: its annotations' own, those of a column, or numbers from 1."""
    if tuple(text) == ("text",) and is_eraser(file):
        yield from ((one.name, one.parts) for one in annotations(file, drop_empty))
        return
    try:
        if file.suffix.lower() == ".txt":
            raise NoColumn("annotation_id", "one text a line has no names")
        for part in stream(file, text=text, label="annotation_id", drop_empty=drop_empty):
            yield from ((str(example.label), {}) for example in part)
    except NoColumn as lacking:
        if lacking.column != "annotation_id":
            raise
        yield from ((str(number), {}) for number in count(1))


def prediction(
    e: Explanation, name: str, parts: Mapping[str, Span] | None = None, share: float = SHARE
) -> dict[str, Any]:
    """One line."""
    parts = parts or {name: (0, len(e.text))}
    tokens = [
        (docid, (begin + a, begin + b)) for docid, (begin, end) in parts.items() for a, b in words(e.text[begin:end])
    ]
    soft = _soft(e, [span for _, span in tokens])
    hard = _hard(soft, share) if e.rationale is None else soft > 0
    rationales = []
    for docid in parts:
        here = np.array([owner == docid for owner, _ in tokens], np.bool_)
        spans = [{"start_token": start, "end_token": end} for start, end in _runs(hard[here])]
        rationales.append(
            {"docid": docid, "hard_rationale_predictions": spans, "soft_rationale_predictions": soft[here].tolist()}
        )
    scores = {str(label): chance for label, chance in e.probabilities.items()}
    return {
        "annotation_id": name,
        "rationales": rationales,
        "classification": str(e.label),
        "classification_scores": scores,
    }


def _soft(e: Explanation, tokens: Sequence[Span]) -> NDArray[np.float64]:
    """The weight of each token.  (T,)"""
    weights = np.zeros(len(tokens))
    if tokens and len(e):
        place = np.searchsorted([start for start, _ in tokens], [start for start, _ in e.spans], side="right") - 1
        np.add.at(weights, place, e.weights)
    return weights


def _hard(soft: NDArray[np.float64], share: float) -> NDArray[np.bool_]:
    """The heaviest share; of equals the earlier.  (T,)"""
    most = max(1, round(share * len(soft)))
    chosen = np.zeros(len(soft), np.bool_)
    chosen[np.argsort(-soft, kind="stable")[:most]] = True
    return chosen & (soft > 0)


def _runs(chosen: NDArray[np.bool_]) -> list[Span]:
    """Where it is True, from … to.

    >>> _runs(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(chosen.astype(np.int8), prepend=0, append=0)).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))
