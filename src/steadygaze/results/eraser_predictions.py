"""Explanations as ERASER predictions, one JSON object per line, for the ERASER scorer.

    annotation_id, classification, classification_scores
    rationales     for each document of the text:
        docid
        soft_rationale_predictions    a weight for each whitespace-separated token
        hard_rationale_predictions    [{"start_token", "end_token"}, …]: the top-weighted tokens

A word belongs to the token in which it begins: "film." has the weights of "film" and "." together.  The hard rationale
is the top-weighted `share` of the tokens, at least one, without negative weights.  For a rationalizer it is the
selected rationale.
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
from steadygaze.data.text_checks import check_labels
from steadygaze.data.user_files import stream_chunks
from steadygaze.results.explanation import Explanation

SHARE = 0.2
Document = tuple[str, Mapping[str, Span]]
"""Name of an annotation, and the characters of each document; empty: the text is one document of the same name."""


def write_predictions(
    path: Path, explanations: Iterable[Explanation], documents: Iterable[Document], share: float = SHARE
) -> int:
    """Write the predictions; return their number."""
    import orjson

    if not 0 < share <= 1:
        raise UserError(f"the share of tokens in a hard rationale must be above 0 and at most 1, found {share}")
    count = 0
    with new_file(path) as new, new.open("wb") as file:
        for explanation, (name, parts) in zip(explanations, documents, strict=False):  # the names may be endless
            file.write(orjson.dumps(prediction(explanation, name, parts, share)) + b"\n")
            count += 1
    return count


def names(file: Path, text: Sequence[str] = ("text",), drop_empty: bool = False) -> Iterator[Document]:
    """Names of the texts in a file: ERASER annotations, the column annotation_id, or numbers from 1."""
    if tuple(text) == ("text",) and is_eraser(file):
        yield from ((annotation.name, annotation.parts) for annotation in annotations(file, drop_empty))
        return
    try:
        if file.suffix.lower() == ".txt":
            raise NoColumn("annotation_id", "one text a line has no names")
        before = 0
        for _, rows in stream_chunks(file, [*text, "annotation_id"], text, drop_empty):
            yield from ((name, {}) for name in _annotation_ids(rows, f"{file.name}, annotation_id of text", before))
            before += len(rows)
    except NoColumn as error:
        if error.column != "annotation_id":
            raise
        yield from ((str(number), {}) for number in count(1))


def _annotation_ids(rows: Sequence[Mapping[str, Any]], column: str, before: int) -> list[str]:
    """`before`: number of texts before these rows, for the error of a missing name."""
    cells = [row["annotation_id"] for row in rows]
    return list(map(str, check_labels(cells, minimum_classes=1, location=lambda i: f"{column} {before + i + 1}")))


def prediction(
    e: Explanation, name: str, parts: Mapping[str, Span] | None = None, share: float = SHARE
) -> dict[str, Any]:
    """One prediction, as a dictionary."""
    parts = parts or {name: (0, len(e.text))}
    tokens = [
        (docid, (begin + a, begin + b)) for docid, (begin, end) in parts.items() for a, b in words(e.text[begin:end])
    ]
    soft = _soft(e, [span for _, span in tokens])
    selected = _hard(soft, share) if e.rationale is None else soft > 0
    rationales = []
    for docid in parts:
        in_document = np.array([owner == docid for owner, _ in tokens], np.bool_)
        spans = [{"start_token": start, "end_token": end} for start, end in _runs(selected[in_document])]
        rationales.append(
            {
                "docid": docid,
                "hard_rationale_predictions": spans,
                "soft_rationale_predictions": soft[in_document].tolist(),
            }
        )
    scores = {str(label): probability for label, probability in e.probabilities.items()}
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
        position = np.searchsorted([start for start, _ in tokens], [start for start, _ in e.spans], side="right") - 1
        np.add.at(weights, position, e.weights)
    return weights


def _hard(soft: NDArray[np.float64], share: float) -> NDArray[np.bool_]:
    """The top-weighted share; ties go to the earlier token.  (T,)"""
    size = max(1, round(share * len(soft)))
    selected = np.zeros(len(soft), np.bool_)
    selected[np.argsort(-soft, kind="stable")[:size]] = True
    return selected & (soft > 0)


def _runs(selected: NDArray[np.bool_]) -> list[Span]:
    """Runs of True, as (start, end).

    >>> _runs(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(selected.astype(np.int8), prepend=0, append=0)).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))
