"""Synonyms of the words of a model.

steadygaze, Hugging Face   synonyms in the model's vocabulary
a black box                new pieces with the case of the word: "good " -> "fine ", "GOOD!" -> "FINE!"

Without a table no word has a synonym: neighbors in a vector space are not synonyms ("good" is close to "bad").
data/synonyms.py excludes some pairs of a table.  A capitalized word of a black box may be a name and is not
substituted; a vocabulary in lower case does not show names.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from steadygaze.adapters.black_box import TextWords
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.core.errors import UserError
from steadygaze.data.synonyms import read_synonyms, substitutable_pairs, vocabulary_lexicon
from steadygaze.techniques.perturbations.word_substitution import MAX_SYNONYMS, Synonyms

Table = Mapping[str, Sequence[str]]
NEGATION = ("n't", "n’t")
"""Continues the word before it: "do" in "don't" is not substituted."""


def synonym_table(subject: ModelAdapter, given: str | Path | Table, texts: Sequence[str] = ()) -> Synonyms:
    """Synonyms from a file or a mapping.

    `texts`: the texts in which words will be substituted, for a black box.
    """
    if isinstance(subject.tokens, TextWords):
        return _text_synonyms(subject.tokens, substitutable_pairs(_table(given, folded=False)), texts)
    lexicon = vocabulary_lexicon(subject.tokens.vocabulary, subject.tokens.kind)
    ids, count = lexicon.table(substitutable_pairs(_table(given, folded=subject.tokens.kind == "words")), MAX_SYNONYMS)
    table, counts, continues, words = map(torch.from_numpy, (ids, count, lexicon.continues, lexicon.words))
    return Synonyms(table, counts, continues, words)


def _table(given: str | Path | Table, *, folded: bool) -> dict[str, list[str]]:
    if isinstance(given, str | Path):
        return read_synonyms(given, folded=folded)
    if not isinstance(given, Mapping):
        raise UserError(f"synonyms must be a file or a mapping of a word to a list of words, found {given!r:.80}")
    items: Iterable[tuple[Any, Any]] = given.items()
    for word, others in items:
        if not isinstance(others, list | tuple) or not all(isinstance(entry, str) for entry in (word, *others)):
            raise UserError(f"synonyms of {word!r:.40} must be a list of words, found {others!r:.80}")
    if not folded:
        return {word: list(others) for word, others in given.items()}
    return {word.lower(): [other.lower() for other in others] for word, others in given.items()}


def _text_synonyms(tokens: TextWords, table: Table, texts: Sequence[str]) -> Synonyms:
    tokens.place(texts)
    synonyms = {word.lower(): others for word, others in table.items()}
    pieces = tokens.vocabulary
    words = [piece.rstrip() for piece in pieces]
    substitutes = [
        [
            match_case(word, other) + piece[len(word) :]
            for other in ([] if word.istitle() else synonyms.get(word.lower(), ()))  # may be a name
            if other.lower() != word.lower()
        ]
        for piece, word in zip(pieces, words, strict=True)
    ]
    flat = iter(tokens.add_pieces([other for others in substitutes for other in others[:MAX_SYNONYMS]]))
    size = len(tokens.vocabulary)
    ids, count = torch.zeros(size, MAX_SYNONYMS, dtype=torch.long), torch.zeros(size, dtype=torch.long)
    for index, others in enumerate(substitutes):
        count[index] = len(others[:MAX_SYNONYMS])
        ids[index, : count[index]] = torch.tensor([next(flat) for _ in others[:MAX_SYNONYMS]], dtype=torch.long)
    continues = torch.zeros(size, dtype=torch.bool)
    continues[: len(words)] = torch.tensor([word.lower() in NEGATION for word in words])
    return Synonyms(ids, count, continues)


def match_case(word: str, other: str) -> str:
    """Give `other` the case of the word: GOOD -> FINE, Good -> Fine.

    >>> match_case("GOOD", "fine"), match_case("Good", "fine"), match_case("good", "fine"), match_case("I", "we")
    ('FINE', 'Fine', 'fine', 'We')
    """
    if len(word) > 1 and word.isupper():
        return other.upper()
    return other[:1].upper() + other[1:] if word[:1].isupper() else other
