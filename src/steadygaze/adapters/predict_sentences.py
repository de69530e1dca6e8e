"""sg.predict_sentences: predictions from every single sentence of some texts.

    other models                 the sentence is the whole input
    a sentence rationalizer      the predictor reads the sentence in its text, as if the generator had selected it

Cost: one forward pass per text and per sentence, and one per counter-sentence and text for at most SAMPLE texts of a
class.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.core.arguments import choice, integer, optional, sequence_of, validated
from steadygaze.core.errors import UserError
from steadygaze.core.maths.sentence_ends import sentence_numbers
from steadygaze.core.types import Batch, Label, Sentences, Span
from steadygaze.data.batches import by_length, collate
from steadygaze.data.sentence_roles import sentence_roles
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.estimator.inputs import join_questions, nonempty_inputs, read_inputs, warn_of_empty
from steadygaze.models import inference
from steadygaze.models.inference import DEVICES
from steadygaze.models.rationalizer import Rationalizer
from steadygaze.perturbations.word_removal import take_rows
from steadygaze.results.sentence_predictions import (
    ClassSentences,
    CounterSentence,
    SentencePrediction,
    SentencePredictions,
)

COUNTERS = 3
"""Counter-sentences of a class."""
SAMPLE = 50
"""Most texts of a class to which a counter-sentence is added."""


@validated(classes=optional(sequence_of), device=choice(*DEVICES), batch_size=integer(1))
def predict_sentences(
    model: Any,
    texts: Any,
    *,
    classes: Sequence[Label] | None = None,
    device: str = "auto",
    batch_size: int = inference.BATCH,
) -> SentencePredictions:
    """Predict the label of every single sentence: which sentences alone give the label of their text.

    If nearly all sentences of a class do, the model has a default class, and a selected sentence is not a reason for
    it.

    Parameters
    ----------
    model : any model that `sg.load` takes, or the result of `sg.load`
        The model.  A rationalizer that selects sentences reads each one in its text, as if it had selected it.
    texts : list of str, or list of (text, question)
        The texts.  An empty text has no sentences, and a warning names it.
    classes : list of str or int, default=None
        Class names, in the order of the probabilities.
    device : str, default="auto"
        Device of a model that this call loads.
    batch_size : int, default=128
        Texts per batch.

    Returns
    -------
    SentencePredictions
        For each class: how many sentences alone give it, and counter-sentences that change its texts.

    Examples
    --------
    >>> import steadygaze as sg
    >>> def strict(texts): return [[0.9, 0.1] if "dirty" in text else [0.2, 0.8] for text in texts]
    >>> texts = ["It was dirty. We left.", "It was clean. We stayed."]
    >>> for item in sg.predict_sentences(strict, texts, classes=["bad", "good"]): print(item.finding)
    bad: 1 of 2 sentences alone give this label; any selection gives it in 0 of 1 text of two or more sentences.
    good: 2 of 2 sentences alone give this label; any selection gives it in 1 of 1 text of two or more sentences.
    """
    return predictions_of_sentences(as_adapter(model, classes=classes, device=device), texts, batch_size, warn=True)


def predictions_of_sentences(
    adapter: ModelAdapter, texts: Any, batch_size: int = inference.BATCH, *, warn: bool = False
) -> SentencePredictions:
    """As `predict_sentences`; `warn`: name empty texts in a warning.  They have no sentences."""
    if adapter.task != "classification":
        raise UserError(f"{adapter.name} is a {adapter.task} model: predict_sentences needs a classifier")
    nonempty, rows, total = nonempty_inputs(texts)
    if warn:
        known = set(rows)
        warn_of_empty((row not in known for row in range(total)), stacklevel=4)
    if not rows:
        return SentencePredictions(adapter.name, (), (), adapter.health)
    strings, questions, annotated = read_inputs(nonempty)
    adapter = adapter.for_pairs(questions is not None)
    whole = adapter.predict_covered(nonempty, batch_size)[0].argmax(-1)
    names, predictions = list(adapter.classes), []
    sentences = _each_sentence(adapter, strings, questions, annotated, batch_size)
    for row, span, probabilities, selected in sorted(sentences):
        index = int(np.argmax(probabilities))
        sentence = strings[row][slice(*span)]
        label, own = names[index], names[whole[row]]
        predictions.append(SentencePrediction(row, sentence, label, probabilities[index], own, selected))
    by_class = []
    for code in sorted(set(whole.tolist())):
        counters = _flips(adapter, (strings, questions), names[code], whole == code, predictions)
        by_class.append(_class_sentences(names[code], predictions, counters))
    numbered = tuple(replace(item, row=rows[item.row]) for item in predictions)
    return SentencePredictions(adapter.name, tuple(by_class), numbered, adapter.health)


Result = tuple[int, Span, list[float], bool]
"""Row, span of the sentence, probabilities, and whether a rationalizer selects it."""


def _each_sentence(
    adapter: ModelAdapter,
    texts: Sequence[str],
    questions: Sequence[str] | None,
    annotated: Sentences | None,
    batch_size: int,
) -> Iterator[Result]:
    """The prediction from each sentence, in any order."""
    model = adapter.model
    if isinstance(model, Rationalizer) and model.selection_config.granularity == "sentence":
        placed = adapter.tokens.place(texts)
        data = adapter.data(placed, questions, annotated)
        for rows in by_length(data, batch_size):
            batch = collate(data, rows).to(model.device)
            numbers = model.sentences(batch)
            own = [_spans(numbers[i][batch.mask[i]].tolist(), placed.spans[row]) for i, row in enumerate(rows.tolist())]
            yield from _in_text(model, batch, rows, numbers, own)
        return
    spans = _split_sentences(texts)
    spans = [list(known) if known else own for known, own in zip(annotated or [None] * len(texts), spans, strict=True)]
    flat = [(row, span) for row, own in enumerate(spans) for span in own]
    if not flat:
        return
    alone = [texts[row][slice(*span)] for row, span in flat]
    selected_questions = None if questions is None else [questions[row] for row, _ in flat]
    probabilities = adapter.predict_covered(join_questions(alone, selected_questions), batch_size)[0].tolist()
    yield from ((row, span, probs, False) for (row, span), probs in zip(flat, probabilities, strict=True))


def _split_sentences(texts: Sequence[str]) -> list[list[Span]]:
    """The spans of the sentences of each text, by the rules of core/maths/sentence_ends.py.

    >>> _split_sentences(["Dr. Bell came. Why?", ""])
    [[(0, 14), (15, 19)], []]
    """
    tokenizer = build_word_tokenizer(texts, max_length=max(1, *map(len, texts)))
    roles = torch.from_numpy(sentence_roles(tokenizer.vocabulary, tokenizer.kind)).long()
    placed, results = tokenizer.place(texts), []
    for row, spans in enumerate(placed.spans):
        part = slice(*placed.ragged.starts[row : row + 2])
        ids = torch.from_numpy(placed.ragged.ids[part][placed.ragged.words[part]]).long()
        numbers = sentence_numbers(roles[ids].unsqueeze(0), torch.ones(1, len(ids), dtype=torch.bool))
        results.append(_spans(numbers[0].tolist(), spans))
    return results


def _spans(numbers: Sequence[int], words: Sequence[Span]) -> list[Span]:
    """The spans of the sentences of a text, from the first to the last word of each."""
    spans: dict[int, Span] = {}
    for number, (start, end) in zip(numbers, words, strict=True):
        if number >= 0:
            spans[number] = (spans[number][0] if number in spans else start, end)
    return [spans[number] for number in sorted(spans)]


def _in_text(
    model: Rationalizer, batch: Batch, rows: NDArray[np.int64], numbers: Tensor, spans: Sequence[Sequence[Span]]
) -> Iterator[Result]:
    """The predictor reads each sentence at its place."""
    index = torch.tensor([i for i, own in enumerate(spans) for _ in own], device=numbers.device)
    sentence = torch.tensor([s for own in spans for s in range(len(own))], device=numbers.device)
    with inference.inference(model):
        chosen = model(batch).selected
        for part in torch.split(torch.arange(len(index), device=numbers.device), inference.BATCH):
            owners, wanted = index[part], sentence[part]
            mask = numbers[owners] == wanted.unsqueeze(-1)
            probabilities = model.read(take_rows(batch, owners), mask).double().softmax(-1).tolist()
            selected = (chosen[owners] & mask).any(-1).tolist()
            for i, s, probs, is_selected in zip(owners.tolist(), wanted.tolist(), probabilities, selected, strict=True):
                yield int(rows[i]), spans[i][s], probs, is_selected


def _class_sentences(
    label: Label, predictions: Sequence[SentencePrediction], counters: tuple[CounterSentence, ...]
) -> ClassSentences:
    by_text: dict[int, list[bool]] = {}
    for item in predictions:
        if item.text_label == label:
            by_text.setdefault(item.row, []).append(item.label == label)
    counts = sum(map(len, by_text.values())), sum(map(sum, by_text.values()))
    several = [same for same in by_text.values() if len(same) > 1]
    return ClassSentences(label, len(by_text), *counts, len(several), sum(map(all, several)), counters)


def _flips(
    adapter: ModelAdapter,
    inputs: tuple[Sequence[str], Sequence[str] | None],
    label: Label,
    of_class: NDArray[np.bool_],
    predictions: Sequence[SentencePrediction],
) -> tuple[CounterSentence, ...]:
    """The counter-sentences of a class, with the texts whose label they change.

    `inputs`: texts and questions; `of_class` (N,): the texts with this predicted class.
    """
    (texts, questions), results = inputs, []
    rows = np.flatnonzero(of_class)[:SAMPLE].tolist()
    best: dict[str, SentencePrediction] = {}
    for item in sorted(predictions, key=lambda item: -item.probability):
        if item.label != label:
            best.setdefault(" ".join(item.sentence.lower().split()), item)
    for item in list(best.values())[:COUNTERS]:
        longer = [f"{texts[row].rstrip()} {item.sentence}" for row in rows]
        selected_questions = None if questions is None else [questions[row] for row in rows]
        predicted = adapter.predict_covered(join_questions(longer, selected_questions), inference.BATCH)[0].argmax(-1)
        flips = int((adapter.classes_[predicted] != label).sum())
        results.append(CounterSentence(item.sentence, item.label, item.probability, flips, len(rows)))
    return tuple(results)
