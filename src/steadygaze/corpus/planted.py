"""Beer reviews whose true reason is known, made from a seed, so that everything runs with no download.

DOC
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from random import Random

from steadygaze.corpus.planted_grammar import SPLITS, Sentence, draw_question, draw_review
from steadygaze.corpus.planted_lexicon import ANTONYMS, ASPECT_OF, ASPECTS
from steadygaze.corpus.planted_lexicon import SYNONYMS as SYNONYMS
from steadygaze.corpus.planted_oracle import LABELS
from steadygaze.corpus.planted_oracle import asked_aspect as asked_aspect
from steadygaze.corpus.planted_oracle import read as read
from steadygaze.errors import UserError, unknown
from steadygaze.types import Example, Span

SIZES = (10_000, 1_000, 2_000)
APPEARANCE_FIRST = 0.95

_ASKED = {"aroma": 0.55, "appearance": 0.85, "palate": 1.0}  # cumulative; why they differ is said above


def planted_reviews(
    seed: int = 0, *, aspect: str = "aroma", appearance_first: float = APPEARANCE_FIRST, sizes: Sequence[int] = SIZES
) -> dict[str, list[Example]]:
    """Splits of reviews labelled "negative" or "positive" by what they say about one aspect.

    `appearance_first` is how often the first sentence is the one about the appearance; `sizes` are those of train,
    validation and test.  A smaller split is the beginning of a larger one.
    """
    if aspect not in ASPECTS:
        raise unknown("aspect", aspect, ASPECTS)
    if not 0 <= appearance_first <= 1:
        raise UserError(f"appearance_first is a share from 0 to 1; found {appearance_first}.")

    def draw(rng: Random, split: str) -> Example:
        return _example(draw_review(rng, split, appearance_first), aspect)

    return _splits(draw, seed, sizes)


def planted_pairs(seed: int = 0, *, sizes: Sequence[int] = SIZES) -> dict[str, list[Example]]:
    """Splits of reviews with a question about one aspect, labelled by what the review says about it."""

    def draw(rng: Random, split: str) -> Example:
        share = rng.random()
        aspect = next(aspect for aspect, up_to in _ASKED.items() if share < up_to)
        question, _ = draw_question(rng, split, aspect).written("?")
        return replace(_example(draw_review(rng, split, APPEARANCE_FIRST), aspect), question=question)

    return _splits(draw, seed, sizes)


def flip(example: Example) -> Example:
    """The truth changed by one word: the opinion becomes its antonym, and the label the other one."""
    span = next(span for span in _evidence(example) if example.text[slice(*span)].lower() in ANTONYMS)
    other = LABELS[example.label == LABELS[0]]
    return replace(swap(example, span, ANTONYMS[example.text[slice(*span)].lower()]), label=other)


def redraw(example: Example, seed: int = 0, *, split: str = "test") -> Example:
    """Everything changed but the truth: the sentence that holds the evidence, among other sentences in another order."""
    evidence = _evidence(example)
    start, end = next(span for span in example.sentences or () if span[0] <= evidence[0][0] < span[1])
    kept = example.text[start:end], tuple((a - start, b - start) for a, b in evidence)
    aspect = next(ASPECT_OF[word] for span in evidence if (word := example.text[slice(*span)].lower()) in ASPECT_OF)
    review = draw_review(Random(f"{seed}/{example.text}"), split, APPEARANCE_FIRST)
    text, spans, sentences = _joined(kept if one.aspect == aspect else (one.written()[0], ()) for one in review)
    return replace(example, text=text, evidence=spans, sentences=sentences)


def swap(example: Example, span: Span, word: str) -> Example:
    """The example with another word at `span`, capitalised as the old one was; all spans stay on their words."""
    start, end = span
    if example.text[start].isupper():
        word = word[0].upper() + word[1:]
    longer = len(word) - (end - start)

    def moved(spans: tuple[Span, ...] | None) -> tuple[Span, ...] | None:
        return spans and tuple((a + longer * (a > start), b + longer * (b > start)) for a, b in spans)

    text = example.text[:start] + word + example.text[end:]
    return replace(example, text=text, evidence=moved(example.evidence), sentences=moved(example.sentences))


def _splits(
    draw: Callable[[Random, str], Example], seed: int, sizes: Sequence[int]
) -> dict[str, list[Example]]:
    """Each split from a stream of its own, without repeated texts."""
    if len(sizes) != len(SPLITS) or not all(isinstance(size, int) and size >= 0 for size in sizes):
        raise UserError(f"sizes are three whole numbers, of {', '.join(SPLITS)}; found {sizes!r}.")
    splits: dict[str, dict[str, Example]] = {split: {} for split in SPLITS}
    for (split, examples), size in zip(splits.items(), sizes, strict=True):
        rng = Random(f"{seed}/{split}")
        while len(examples) < size:
            example = draw(rng, split)
            examples.setdefault(example.text, example)
    return {split: list(examples.values()) for split, examples in splits.items()}


def _example(review: Iterable[Sentence], aspect: str) -> Example:
    """A review written out, labelled by what it says about one aspect."""
    label = next(LABELS[sentence.positive] for sentence in review if sentence.aspect == aspect)
    written = ((sentence.aspect, *sentence.written()) for sentence in review)
    text, evidence, sentences = _joined((text, spans if about == aspect else ()) for about, text, spans in written)
    return Example(text, label, evidence=evidence, sentences=sentences)


def _joined(parts: Iterable[tuple[str, tuple[Span, ...]]]) -> tuple[str, tuple[Span, ...], tuple[Span, ...]]:
    """Sentences and the evidence in each -> the text, its evidence, its sentences."""
    texts: list[str] = []
    evidence: list[Span] = []
    sentences: list[Span] = []
    at = 0
    for text, spans in parts:
        texts.append(text)
        evidence += ((at + a, at + b) for a, b in spans)
        sentences.append((at, at + len(text)))
        at += len(text) + 1
    return " ".join(texts), tuple(evidence), tuple(sentences)


def _evidence(example: Example) -> tuple[Span, ...]:
    if not example.evidence:
        raise UserError(f"only planted examples with their evidence can be edited; found none in {example.text[:60]!r}.")
    return example.evidence
