"""Beer reviews whose true reason is known, made from a seed: everything runs on them with no download.

TODO
"""

from collections.abc import Sequence
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


def planted_reviews(seed=0, *, aspect="aroma", appearance_first=0.95, sizes=SIZES):
    out = {}
    for split, size in zip(SPLITS, sizes):
        rng = Random(f"{seed}/{split}")
        out[split] = [example(draw_review(rng, split, appearance_first), aspect) for _ in range(size)]
    return out


def planted_pairs(seed=0, *, appearance_first=0.95, sizes=SIZES):
    out = {}
    for split, size in zip(SPLITS, sizes):
        rng = Random(f"{seed}/{split}")
        out[split] = []
        for _ in range(size):
            r = draw_review(rng, split, appearance_first)
            a = ASPECTS[int(3 * rng.random())]
            out[split].append(replace(example(r, a), question=draw_question(rng, split, a)))
    return out


def example(review, aspect):
    text, evidence, sentences, label = "", (), [], None
    for s in review:
        t, ev = s.written()
        at = len(text) + bool(text)
        if s.aspect == aspect:
            evidence = tuple((at + a, at + b) for a, b in ev)
            label = LABELS[s.positive]
        text = f"{text} {t}" if text else t
        sentences.append((at, len(text)))
    return Example(text, label, evidence=evidence, sentences=tuple(sentences))
