"""Words that may stand for each other in what a subject reads, whoever made it.

ours, Hugging Face   a table of synonyms in their own vocabulary; without one, words with close vectors
a black box          a table makes new pieces, written as the word was: "Good " -> "Fine ", "GOOD!" -> "FINE!"
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from steadygaze.errors import UserError
from steadygaze.perturb.words import MOST, Synonyms, by_vectors, without
from steadygaze.subject.subject import Subject
from steadygaze.subject.words import TextWords
from steadygaze.tokens.synonyms import lexicon, read_synonyms

Table = Mapping[str, Sequence[str]]
NEGATION = ("n't", "n’t")
"""Goes on with the word before it: nobody writes "perform" for the "do" of "don't"."""


def table_for(subject: Subject, given: str | Path | Table | None = None, texts: Sequence[str] = ()) -> Synonyms | None:
    """From a file or a mapping, else from the model's vectors; None for a black box without a table.

    `texts` are those in which words will be exchanged: a black box knows no others.
    """
    if isinstance(subject.tokens, TextWords):
        return None if given is None else _of_texts(subject.tokens, _table(given, folded=False), texts)
    known = lexicon(subject.tokens.vocabulary, subject.tokens.kind)
    continues, words = torch.from_numpy(known.continues), torch.from_numpy(known.words)
    if given is not None:
        ids, count = known.table(_table(given, folded=subject.tokens.kind == "words"), MOST)
        return Synonyms(torch.from_numpy(ids), torch.from_numpy(count), continues, words)
    if "vectors" not in subject.model.abilities:
        return None
    vectors = subject.model.vectors.detach()[: len(words)]  # a network may have some to spare
    seen = torch.full((len(words),), not texts)
    seen[torch.from_numpy(subject.tokens.encode(texts).ids).long()] = True
    return by_vectors(vectors, without(len(words), continues, words).to(vectors.device), seen.to(vectors.device))


def _table(given: str | Path | Table, *, folded: bool) -> dict[str, list[str]]:
    if isinstance(given, str | Path):
        return read_synonyms(given, folded=folded)
    if not isinstance(given, Mapping):
        raise UserError(f"synonyms must be a file or a mapping of a word to a list of words, found {given!r:.80}")
    items: Iterable[tuple[Any, Any]] = given.items()
    for word, others in items:
        if isinstance(others, str) or not all(isinstance(one, str) for one in (word, *others)):
            raise UserError(f"synonyms of {word!r:.40} must be a list of words, found {others!r:.80}")
    if not folded:
        return {word: list(others) for word, others in given.items()}
    return {word.lower(): [other.lower() for other in others] for word, others in given.items()}


def _of_texts(tokens: TextWords, table: Table, texts: Sequence[str]) -> Synonyms:
    tokens.place(texts)
    found = {word.lower(): others for word, others in table.items()}
    pieces = tokens.vocabulary
    words = [piece.rstrip() for piece in pieces]
    several = [
        [
            like(word, other) + piece[len(word) :]
            for other in found.get(word.lower(), ())
            if other.lower() != word.lower()
        ]
        for piece, word in zip(pieces, words, strict=True)
    ]
    flat = iter(tokens.learn([other for others in several for other in others[:MOST]]))
    size = len(tokens.vocabulary)
    ids, count = torch.zeros(size, MOST, dtype=torch.long), torch.zeros(size, dtype=torch.long)
    for index, others in enumerate(several):
        count[index] = len(others[:MOST])
        ids[index, : count[index]] = torch.tensor([next(flat) for _ in others[:MOST]], dtype=torch.long)
    continues = torch.zeros(size, dtype=torch.bool)
    continues[: len(words)] = torch.tensor([word.lower() in NEGATION for word in words])
    return Synonyms(ids, count, continues)


def like(word: str, other: str) -> str:
    """Written as the word is: GOOD -> FINE, Good -> Fine.

    >>> like("GOOD", "fine"), like("Good", "fine"), like("good", "fine"), like("I", "we")
    ('FINE', 'Fine', 'fine', 'We')
    """
    if len(word) > 1 and word.isupper():
        return other.upper()
    return other[:1].upper() + other[1:] if word[:1].isupper() else other
