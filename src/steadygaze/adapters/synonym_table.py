"""Words that may be substituted in what a subject reads, whoever made it.

ours, Hugging Face   a table of synonyms in their own vocabulary
a black box          a table makes new pieces, written as the word was: "good " -> "fine ", "GOOD!" -> "FINE!"

Without a table no word has a synonym: neighbors in a vector space are not synonyms ("good" lies beside "bad").
data/synonyms.py has the pairs of a table that are never substituted.  A capitalized word of a black box may be a
name, and is not substituted; a vocabulary in lower case does not show names.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from steadygaze.adapters.black_box import TextWords
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.core.errors import UserError
from steadygaze.data.synonyms import read_synonyms, substitutable_pairs, vocabulary_lexicon
from steadygaze.techniques.perturbations.word_substitution import MOST, Synonyms

Table = Mapping[str, Sequence[str]]
NEGATION = ("n't", "n’t")
"""Goes on with the word before it: nobody writes "perform" for the "do" of "don't"."""


def synonym_table(
    subject: ModelAdapter, given: str | Path | Table | None = None, texts: Sequence[str] = ()
) -> Synonyms | None:
    """From a file or a mapping; None without one.

    `texts` are those in which words will be substituted: a black box knows no others.
    """
    if given is None:
        return None
    if isinstance(subject.tokens, TextWords):
        return _of_texts(subject.tokens, substitutable_pairs(_table(given, folded=False)), texts)
    known = vocabulary_lexicon(subject.tokens.vocabulary, subject.tokens.kind)
    ids, count = known.table(substitutable_pairs(_table(given, folded=subject.tokens.kind == "words")), MOST)
    table, many, continues, words = map(torch.from_numpy, (ids, count, known.continues, known.words))
    return Synonyms(table, many, continues, words)


def _table(given: str | Path | Table, *, folded: bool) -> dict[str, list[str]]:
    if isinstance(given, str | Path):
        return read_synonyms(given, folded=folded)
    if not isinstance(given, Mapping):
        raise UserError(f"synonyms must be a file or a mapping of a word to a list of words, found {given!r:.80}")
    items: Iterable[tuple[Any, Any]] = given.items()
    for word, others in items:
        if not isinstance(others, list | tuple) or not all(isinstance(one, str) for one in (word, *others)):
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
            match_case(word, other) + piece[len(word) :]
            for other in ([] if word.istitle() else found.get(word.lower(), ()))  # a name, perhaps
            if other.lower() != word.lower()
        ]
        for piece, word in zip(pieces, words, strict=True)
    ]
    flat = iter(tokens.add_pieces([other for others in several for other in others[:MOST]]))
    size = len(tokens.vocabulary)
    ids, count = torch.zeros(size, MOST, dtype=torch.long), torch.zeros(size, dtype=torch.long)
    for index, others in enumerate(several):
        count[index] = len(others[:MOST])
        ids[index, : count[index]] = torch.tensor([next(flat) for _ in others[:MOST]], dtype=torch.long)
    continues = torch.zeros(size, dtype=torch.bool)
    continues[: len(words)] = torch.tensor([word.lower() in NEGATION for word in words])
    return Synonyms(ids, count, continues)


def match_case(word: str, other: str) -> str:
    """Written as the word is: GOOD -> FINE, Good -> Fine.

    >>> match_case("GOOD", "fine"), match_case("Good", "fine"), match_case("good", "fine"), match_case("I", "we")
    ('FINE', 'Fine', 'fine', 'We')
    """
    if len(word) > 1 and word.isupper():
        return other.upper()
    return other[:1].upper() + other[1:] if word[:1].isupper() else other
