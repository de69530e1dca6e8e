"""Changes to a planted example: of its truth alone, or of everything else."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from steadygaze.corpus.planted.grammar import APPEARANCE_FIRST, SPLITS, draw_review, join
from steadygaze.corpus.planted.lexicon import ANTONYMS, ASPECT_OF
from steadygaze.corpus.planted.oracle import LABELS
from steadygaze.errors import UserError, unknown
from steadygaze.types import Example, Span


def flip(example: Example) -> Example:
    """The truth changed by one word: the opinion becomes its antonym, and the label the other one."""
    span, word = _spot(example, ANTONYMS)
    return replace(swap(example, span, ANTONYMS[word]), label=LABELS[example.label == LABELS[0]])


def redraw(example: Example, seed: int = 0, *, split: str = "test") -> Example:
    """The sentence that holds the evidence, among newly drawn ones.

    That sentence keeps its neutral words too: an example is text, which does not say what template it was drawn from.
    """
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    (at, _), noun = _spot(example, ASPECT_OF)
    start, end = next(span for span in example.sentences or ((0, len(example.text)),) if span[0] <= at < span[1])
    kept = example.text[start:end], tuple((a - start, b - start) for a, b in example.evidence or ())
    review = draw_review(Random(f"{seed}/{example.text}"), split, APPEARANCE_FIRST)
    parts = (kept if one.aspect == ASPECT_OF[noun] else (one.written()[0], ()) for one in review)
    text, evidence, sentences = join(parts)
    return replace(example, text=text, evidence=evidence, sentences=sentences)


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


def _spot(example: Example, lexicon: Mapping[str, str]) -> tuple[Span, str]:
    """Where the evidence holds a word of the lexicon, and which."""
    for start, end in example.evidence or ():
        if (word := example.text[start:end].lower()) in lexicon:
            return (start, end), word
    raise UserError(f"only a planted example with its evidence can be edited; found {example.text[:60]!r}.")
