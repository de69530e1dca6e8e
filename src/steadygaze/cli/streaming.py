"""Chunks worked on side by side: one thread each, in order, a bounded number at a time.

A small network leaves cores idle when each of its operations is split over all of them.  So each lane takes a whole
chunk, tokenising, network and all, with one core for its tensor operations; Python's lock is free while these run.

What a model makes of texts: a thousand at a time, so that memory does not grow with a file.
"""

import os
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import torch

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.adapters.text_explainer import TextExplainer
from steadygaze.audit import certificate
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.types import Label
from steadygaze.data.corpus import Corpus
from steadygaze.data.token_alignment import Coverage
from steadygaze.data.user_files import stream
from steadygaze.estimator.explain_texts import ExplainRequest, explain_texts
from steadygaze.estimator.inputs import read_texts
from steadygaze.estimator.resumable_training import texts
from steadygaze.estimator.text_classifier import Granularity, TextClassifier, predict_labels
from steadygaze.explainers.explainer import Explainer
from steadygaze.explainers.resolve import configure_explainer, default_explainer, require_capabilities
from steadygaze.models import inference
from steadygaze.models.classifier import Classifier
from steadygaze.models.model_protocol import Model, NonFiniteOutput
from steadygaze.models.rationalizer import Rationalizer
from steadygaze.report.page import render, write
from steadygaze.results.explanation import Explanation

A = TypeVar("A")
B = TypeVar("B")

TOKENS = "TOKENIZERS_PARALLELISM"
MOST = 8
"""Each lane holds a chunk, and Python has one lock for all of them."""

PATIENCE = 1e-4
"""Seconds a lane may hold Python's lock while another waits for it; the usual 5e-3 are longer than a small network's
operations, and the network of one lane would stand still whenever the other makes objects."""


def lane_count(device: torch.device) -> int:
    """As many as torch would use cores, MOST at most; on a GPU two, so that it need not wait for ids."""
    return min(torch.get_num_threads(), MOST) if device.type == "cpu" else 2


@contextmanager
def _one_core_for_tokens() -> Iterator[None]:
    """The `tokenizers` library, too, would split each chunk over all cores; it looks at this variable on every call."""
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
    """map(work, chunks), in order; at most lanes + 1 chunks are held at any time."""
    if lanes < 2:
        yield from map(work, chunks)
        return
    threads, patience = torch.get_num_threads(), sys.getswitchinterval()
    sys.setswitchinterval(PATIENCE)
    with _one_core_for_tokens(), ThreadPoolExecutor(lanes, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        waiting: deque[Future[B]] = deque()
        try:
            for chunk in chunks:
                waiting.append(pool.submit(work, chunk))
                if len(waiting) > lanes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
            torch.set_num_threads(threads)  # threads started later take the last number set
            sys.setswitchinterval(patience)


CHUNK = 1024
"""Texts read, explained and written at a time."""
DRAWN = 1000
"""Texts that a page shows at most; a browser would choke on more."""


def read(
    pair: bool,
    given: Sequence[str],
    file: Path | None,
    text: Sequence[str],
    drop_empty: bool,
    both: tuple[str, str] | None = None,
) -> Iterator[list[Any]]:
    """Texts of the command line, or `both` texts of a pair, then those of a file, a chunk at a time."""
    if not given and file is None and both is None:
        raise UserError('nothing to read: give a text in quotes, as in: predict MODEL "A fine film." or --file FILE')
    if both is not None:
        if given or file is not None:
            raise UserError("--pair is one pair of texts: leave out other texts and --file")
        yield [both]
    elif given and pair:
        if len(given) != 2:
            raise UserError(f"this model reads a text and a question about it: give both, found {len(given)} texts")
        yield [(given[0], given[1])]
    elif given:
        yield list(given)
    if file is not None:
        for examples in stream(file, text=text, drop_empty=drop_empty, chunk=CHUNK):
            yield texts(examples)


def predict(
    clf: TextClassifier,
    chunks: Iterator[list[Any]],
    batch_size: int | None = None,
    warn: Callable[[str], None] = warnings.warn,
) -> Iterator[dict[str, Any]]:
    """One record per text, in order.  After the last, `warn` gets what is wrong with how the texts were read."""
    classes = [str(label) for label in clf.classes_]
    asked = partial(predict_labels, clf, batch_size=batch_size or inference.BATCH)
    read = Coverage()
    for chunk, (rows, part) in _side_by_side(clf.stored_.model, asked, chunks):
        read += part
        for item, chances in zip(chunk, rows.tolist(), strict=True):
            best = max(range(len(chances)), key=chances.__getitem__)
            record = {"text": item} if isinstance(item, str) else {"text": item[0], "question": item[1]}
            label = clf.classes_[best].item()
            yield {**record, "label": label, "probabilities": dict(zip(classes, chances, strict=True))}
    for sentence in read.warnings():
        warn(sentence)


def explain(
    model: TextClassifier | ModelAdapter,
    chunks: Iterator[list[Any]],
    explainer: str | TextExplainer | None = None,
    target: str | None = None,
    granularity: Granularity = "word",
    batch_size: int | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Iterator[Explanation]:
    """One Explanation per text, in order, of whoever's model it is; by what it shows itself, or by this explainer.

    `settings` are those of the explainer (samples, steps …), `seed` what it draws from.
    """
    subject = as_adapter(model)
    name, way = _explainer(subject, explainer, settings or {}, seed)
    request = _request(subject, name, way, target, granularity)

    def asked(chunk: list[Any]) -> list[Explanation]:
        read, questions = read_texts(chunk)
        able = subject.for_pairs(questions is not None)
        size = batch_size or inference.BATCH
        return explain_texts(able.model, able.tokens, able.classes, read, questions, request, size)

    for _, explained in _side_by_side(subject.model, asked, chunks):
        yield from explained


def _explainer(
    subject: ModelAdapter, explainer: str | TextExplainer | None, settings: Mapping[str, Any], seed: int
) -> tuple[str, Explainer]:
    """By name with these settings, or as it was fitted."""
    given = default_explainer(subject.model) if explainer is None else explainer
    if isinstance(given, str):
        return given, configure_explainer(given, settings, seed)
    given.check_subject(subject)
    if settings:
        raise UserError(f"the settings of {given.name} were fixed when it was fitted: leave out --set")
    return given.name, given.explainer


def _request(
    subject: ModelAdapter, name: str, way: Explainer, target: str | None, granularity: Granularity
) -> ExplainRequest:
    """What is asked of each text, if it can be asked of this model."""
    aim = None if target is None else _known_label(subject, target)
    require_capabilities(name, way, subject.model, subject.name)
    if aim is not None and not way.class_specific:
        raise UserError(f"{name} is the same whatever class is asked about: leave out the target {aim!r}")
    return ExplainRequest(way, name, aim, granularity)


def _known_label(subject: ModelAdapter, written: str) -> Label:
    """The label that a word of the command line stands for."""
    labels = {str(label): label for label in subject.classes}
    if written not in labels:
        raise unknown("label", written, labels)
    return labels[written]


def _side_by_side(
    model: Model, work: Callable[[list[Any]], Any], chunks: Iterator[list[Any]]
) -> Iterator[tuple[list[Any], Any]]:
    """Every chunk and what became of it.  Of others' networks nobody knows whether threads may share them."""
    lanes = lane_count(model.device) if isinstance(model, Classifier | Rationalizer) else 1

    def counted(item: tuple[int, list[Any]]) -> tuple[list[Any], Any]:
        before, chunk = item
        try:
            return chunk, work(chunk)
        except NonFiniteOutput as error:  # which knows the position in the chunk
            raise NonFiniteOutput(before + error.row) from None

    with inference.evaluation(model):
        yield from map_in_lanes(counted, _numbered(chunks), lanes)


def _numbered(chunks: Iterator[list[Any]]) -> Iterator[tuple[int, list[Any]]]:
    """Every chunk with the number of texts before it."""
    before = 0
    for chunk in chunks:
        yield before, chunk
        before += len(chunk)


def certify(
    clf: TextClassifier,
    corpus: Corpus,
    split: str | None = None,
    reference: TextClassifier | None = None,
    batch_size: int | None = None,
    **asked: Any,
) -> certificate.Certificates:
    """One Certificate per text of a split, the same that an audit would read."""
    found = texts(corpus.splits[corpus.choose(split)])
    return certificate.certify(clf, found, reference=reference, batch_size=batch_size or inference.BATCH, **asked)


def write_explanations(
    path: Path, found: Iterator[Explanation], model: Path, notes: Sequence[str] = (), replace: bool = False
) -> dict[str, int]:
    """A page of the first DRAWN texts; the others are counted."""
    drawn = list(islice(found, DRAWN))
    total = len(drawn) + sum(1 for _ in found)
    others = {one.explainer for one in drawn if one.explainer != "attention"}
    shown = f"what {others.pop()} says of each word" if others else "how much its decoder was given of each word"
    shown = "what it selected to read" if drawn and drawn[0].rationale is not None else shown
    lead = "  ".join([f"What the model {model.name} predicts, and {shown}.", *notes])
    left = [f"{total - len(drawn):,} more texts were explained and are not drawn here."] if total > len(drawn) else []
    write(path, render("Explanations", lead=lead, explanations=drawn, notes=left), replace)
    return {"explained": total, "drawn": len(drawn)}
