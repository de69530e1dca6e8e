"""Read, predict and explain texts in chunks, so that memory does not grow with the file.

Each thread processes a whole chunk on one core.  A small network would leave cores idle if each operation used all.
"""

import math
import os
import sys
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.adapters.output_labels import binary_labels
from steadygaze.core.errors import UserError
from steadygaze.core.types import Example, Label, Task, inputs_of, texts_of
from steadygaze.data.text_checks import EmptyTexts as EmptyTexts
from steadygaze.data.text_checks import is_empty
from steadygaze.data.token_alignment import Coverage, truncation
from steadygaze.data.token_alignment import coverage as token_coverage
from steadygaze.estimator.explain_request import ExplainRequest
from steadygaze.estimator.inputs import explain_nonempty
from steadygaze.models import inference
from steadygaze.models.inference import Model, NonFiniteOutput

if TYPE_CHECKING:
    from steadygaze.estimator.text_classifier import TextClassifier
    from steadygaze.results.explanation import Explanation

A = TypeVar("A")
B = TypeVar("B")

TOKENS = "TOKENIZERS_PARALLELISM"
MOST = 8
"""Threads share the global interpreter lock, and each keeps a chunk in memory."""

PATIENCE = 1e-4
"""Switch interval of the interpreter, in seconds.  The default, 5e-3, exceeds an operation of a small network."""


def lane_count(device: torch.device) -> int:
    """Number of threads: the cores of torch, at most MOST; two on a GPU, so that it does not wait for tokens."""
    return min(torch.get_num_threads(), MOST) if device.type == "cpu" else 2


@contextmanager
def _single_core_tokenizers() -> Iterator[None]:
    """Keep the `tokenizers` library from using all cores; it reads this variable on every call."""
    before = os.environ.get(TOKENS)
    os.environ[TOKENS] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ[TOKENS]
        else:
            os.environ[TOKENS] = before


def map_in_lanes(work: Callable[[A], B], chunks: Iterable[A], lanes: int) -> Iterator[B]:
    """map(work, chunks), in order, with at most lanes + 1 chunks in memory."""
    if lanes < 2:
        yield from map(work, chunks)
        return
    threads, interval = torch.get_num_threads(), sys.getswitchinterval()
    sys.setswitchinterval(PATIENCE)
    with _single_core_tokenizers(), ThreadPoolExecutor(lanes, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        pending: deque[Future[B]] = deque()
        try:
            for chunk in chunks:
                pending.append(pool.submit(work, chunk))
                if len(pending) > lanes:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
            torch.set_num_threads(threads)  # threads that start later use the last value
            sys.setswitchinterval(interval)


CHUNK = 1024
"""Texts per chunk."""
SLOW = 25
"""Forward passes per text from which an explainer reads fewer texts at a time, so that results come after seconds."""
PASSES, FEWEST = 4096, 16
"""About so many forward passes per chunk of a slow explainer, and its fewest texts."""


def chunk_of(model: Model, explainer: Any) -> int | None:
    """The texts that a slow explainer reads at a time; None: CHUNK."""
    from steadygaze.explainers.resolve_explainer import default_explainer, resolve_explainer

    method = resolve_explainer(default_explainer(model) if explainer is None else explainer)[1]
    return max(FEWEST, PASSES // method.forward_passes) if method.forward_passes >= SLOW else None


def pieces(items: Sequence[A], size: int | None) -> Iterator[Sequence[A]]:
    """
    >>> list(pieces("abcde", 2)), list(pieces("abcde", None))
    (['ab', 'cd', 'e'], ['abcde'])
    """
    step = size or max(1, len(items))
    return (items[start : start + step] for start in range(0, len(items), step))


def read(
    pair: bool,
    quoted: Sequence[str],
    file: Path | None,
    text: Sequence[str],
    drop_empty: bool,
    both: tuple[str, str] | None = None,
    sentences: str | None = None,
    label: str | None = None,
    task: Task = "classification",
    dropped: Counter[str] | None = None,
    empty: EmptyTexts | None = None,
) -> Iterator[list[Any]]:
    """Yield chunks: texts of the command line, or the pair `both`, then the texts of a file.

    `sentences`: the column of the file with given sentences.  `label`: the column whose empty cells `drop_empty` leaves
    out, as `labels` does; None: labels are not read.  `dropped` counts the rows that are left out.  `empty` receives
    the empty texts, instead of an error.
    """
    if not quoted and file is None and both is None:
        raise UserError(
            'nothing to read: give a text in quotes, as in: predict MODEL "A fine film.", --file FILE, or --pair "A '
            'text." "Another."; --text names a column of the file'
        )
    if both is not None:
        if quoted or file is not None:
            raise UserError("--pair is one pair of texts: leave out other texts and --file")
        yield _counted([both], empty)
    elif quoted and pair:
        if len(quoted) != 2:
            raise UserError(f"this model reads a text and a question about it: give both, found {len(quoted)}")
        yield _counted([(quoted[0], quoted[1])], empty)
    elif quoted:
        yield _counted(list(quoted), empty)
    if file is not None:
        from steadygaze.data.user_files import stream  # imports pyarrow

        options: dict[str, Any] = {"task": task, "sentences": sentences, "dropped": dropped, "empty": empty}
        for examples in stream(file, text=text, label=label, drop_empty=drop_empty, chunk=CHUNK, **options):
            yield inputs_of(examples)


def _counted(inputs: list[Any], empty: EmptyTexts | None) -> list[Any]:
    """The inputs of the command line; with `empty`, those without a text are added to it."""
    if empty is None:
        return inputs
    for number, item in enumerate(inputs, 1):
        if isinstance(item, str):
            names = [f"text {number}"] if is_empty(item) else []
        else:
            names = [name for name, text in zip(("first", "second"), item, strict=True) if is_empty(text)]
            names = [f"the {' and the '.join(names)} text of the pair"] if names else []
        for name in names:
            empty.add(name)
    return inputs


def labels(
    adapter: ModelAdapter, target: Label | None, file: Path, text: Sequence[str], label: str, drop_empty: bool
) -> "Iterator[Label | None]":
    """Yield the class of every row of a file, None without a label; `target`: the output of a multi-label model."""
    from steadygaze.data.user_files import stream

    if adapter.task == "regression":
        raise UserError(f"--label marks wrong classes, and {adapter.name} predicts numbers: use evaluate")
    classifier = adapter.for_output(target)
    options: dict[str, Any] = {"drop_empty": drop_empty, "chunk": CHUNK, "task": adapter.task, "empty": EmptyTexts()}
    for examples in stream(file, text=text, label=label, **options):
        values = [example.label for example in examples if example.label is not None]
        if adapter.outputs:
            values = binary_labels(values, adapter.outputs, adapter.output_position(target)[1])
        codes = iter(classifier.label_codes(values) if values else ())
        yield from (None if example.label is None else classifier.classes[next(codes)] for example in examples)


def with_true_labels(
    adapter: ModelAdapter,
    explanations: "Iterator[Explanation | None]",
    labels: "Iterator[Label | None]",
    counts: dict[str, int],
) -> "Iterator[Explanation | None]":
    """Yield explanations with the labels of the data; count the wrong predictions and the training texts."""
    for explanation, label in zip(explanations, labels, strict=True):
        if explanation is None:
            yield None
            continue
        marked = replace(explanation, true_label=label)
        text = marked.text if marked.question is None else (marked.text, marked.question)
        counts["labeled"] += 1
        counts["wrong"] += marked.is_wrong
        counts["training_texts"] += adapter.training_overlap([text]) or 0
        yield marked


def predict(
    adapter: ModelAdapter,
    chunks: Iterator[list[Any]],
    batch_size: int = inference.BATCH,
    warn: Callable[[Warning], None] = warnings.warn,
) -> Iterator[dict[str, Any]]:
    """Yield one record per text, in order; then `warn` receives the warnings about tokenization."""
    classes = [str(label) for label in adapter.classes]
    work = partial(adapter.predict_covered, batch_size=batch_size)
    coverage = Coverage()
    for chunk, (rows, part) in _in_parallel(adapter.model, work, chunks):
        coverage += part
        items = (texts_of([item])[0] if isinstance(item, Example) else item for item in chunk)
        for item, probabilities in zip(items, rows.tolist(), strict=True):
            record = {"text": item} if isinstance(item, str) else {"text": item[0], "question": item[1]}
            values = [None if math.isnan(value) else value for value in probabilities]
            yield {**record, **prediction(adapter, dict(zip(classes, values, strict=True)))}
    for warning in coverage.warnings():
        warn(warning)


def prediction(adapter: ModelAdapter, values: Mapping[str, float | None]) -> dict[str, Any]:
    """label and probabilities; several labels of a multi-label model; values of a regression model.

    `values`: None for an empty text, which has no label.
    """
    known = {name: value for name, value in values.items() if value is not None}
    if adapter.task == "regression":
        return {"values": values}
    if adapter.task == "multi-label":
        labels = [name for name, value in known.items() if value > 0.5]
        return {"labels": labels if known else None, "probabilities": values}
    best = max(range(len(known)), key=list(known.values()).__getitem__, default=None)
    return {"label": None if best is None else adapter.classes[best], "probabilities": values}


def explain(
    model: "TextClassifier | ModelAdapter",
    chunks: Iterator[list[Any]],
    request: ExplainRequest,
    note: Callable[[str], None] | None = None,
) -> "Iterator[Explanation | None]":
    """Yield one Explanation per text of the chunks, in order; None: an empty text.

    A warning about truncated texts comes last; then `note` receives the number of unknown tokens, if there are any.
    """
    from steadygaze.adapters.as_adapter import as_adapter

    adapter = as_adapter(model)
    work = partial(explain_nonempty, explain=adapter.explain_function(request))
    coverage, step = Coverage(), chunk_of(adapter.model, request.explainer)
    chunks = (list(piece) for chunk in chunks for piece in pieces(chunk, step))
    for _, results in _in_parallel(adapter.model, work, chunks):
        explanations = [explanation for explanation in results if explanation is not None]
        if note is None or getattr(adapter.tokens, "unknown_id", None) is None:
            coverage += truncation(adapter.tokens, [e.read_to for e in explanations])
        elif texts := [explanation.text for explanation in explanations]:
            coverage += token_coverage(adapter.tokens, adapter.tokens.place(texts).ragged)
        yield from results
    for warning in (coverage if note is None else replace(coverage, unknown=0)).warnings():
        warnings.warn(warning, stacklevel=2)
    if note is not None and coverage.unknown_note:
        note(coverage.unknown_note)


def _in_parallel(
    model: Model, work: Callable[[list[Any]], Any], chunks: Iterator[list[Any]]
) -> Iterator[tuple[list[Any], Any]]:
    """Yield every chunk with its result.  Networks of other libraries may not be thread-safe: they get one thread."""
    lanes = lane_count(model.device) if "threads" in model.capabilities else 1

    def numbered() -> Iterator[tuple[int, list[Any]]]:
        """Every chunk with the number of texts before it."""
        before = 0
        for chunk in chunks:
            yield before, chunk
            before += len(chunk)

    def work_numbered(item: tuple[int, list[Any]]) -> tuple[list[Any], Any]:
        before, chunk = item
        try:
            return chunk, work(chunk)
        except NonFiniteOutput as error:  # its row is relative to the chunk
            raise NonFiniteOutput(before + error.row) from None

    with inference.evaluation(model):
        yield from map_in_lanes(work_numbered, numbered(), lanes)
