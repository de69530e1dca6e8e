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


def synonym_table(subject: ModelAdapter, synonyms: str | Path | Table, texts: Sequence[str] = ()) -> Synonyms:
    """Synonyms from a file or a mapping.

    `texts`: the texts in which words will be substituted, for a black box.
    """
    if isinstance(subject.tokens, TextWords):
        return _text_synonyms(subject.tokens, substitutable_pairs(_table(synonyms, folded=False)), texts)
    lexicon = vocabulary_lexicon(subject.tokens.vocabulary, subject.tokens.kind)
    ids, count = lexicon.table(
        substitutable_pairs(_table(synonyms, folded=subject.tokens.kind == "words")), MAX_SYNONYMS
    )
    table, counts, continues, words = map(torch.from_numpy, (ids, count, lexicon.continues, lexicon.words))
    return Synonyms(table, counts, continues, words)


def _table(synonyms: str | Path | Table, *, folded: bool) -> dict[str, list[str]]:
    if isinstance(synonyms, str | Path):
        return read_synonyms(synonyms, folded=folded)
    if not isinstance(synonyms, Mapping):
        raise UserError(f"synonyms must be a file or a mapping of a word to a list of words, found {synonyms!r:.80}")
    items: Iterable[tuple[Any, Any]] = synonyms.items()
    for word, words in items:
        if not isinstance(words, list | tuple) or not all(isinstance(entry, str) for entry in (word, *words)):
            raise UserError(f"synonyms of {word!r:.40} must be a list of words, found {words!r:.80}")
    if not folded:
        return {word: list(words) for word, words in synonyms.items()}
    return {word.lower(): [synonym.lower() for synonym in words] for word, words in synonyms.items()}


def _text_synonyms(tokens: TextWords, table: Table, texts: Sequence[str]) -> Synonyms:
    tokens.place(texts)
    synonyms = {word.lower(): row for word, row in table.items()}
    pieces = tokens.vocabulary
    words = [piece.rstrip() for piece in pieces]
    substitutes = [
        [
            match_case(word, synonym) + piece[len(word) :]
            for synonym in ([] if word.istitle() else synonyms.get(word.lower(), ()))  # may be a name
            if synonym.lower() != word.lower()
        ]
        for piece, word in zip(pieces, words, strict=True)
    ]
    flat = iter(tokens.add_pieces([synonym for row in substitutes for synonym in row[:MAX_SYNONYMS]]))
    size = len(tokens.vocabulary)
    ids, count = torch.zeros(size, MAX_SYNONYMS, dtype=torch.long), torch.zeros(size, dtype=torch.long)
    for index, row in enumerate(substitutes):
        count[index] = len(row[:MAX_SYNONYMS])
        ids[index, : count[index]] = torch.tensor([next(flat) for _ in row[:MAX_SYNONYMS]], dtype=torch.long)
    continues = torch.zeros(size, dtype=torch.bool)
    continues[: len(words)] = torch.tensor([word.lower() in NEGATION for word in words])
    return Synonyms(ids, count, continues)


def match_case(word: str, synonym: str) -> str:
    """Give `synonym` the case of the word: GOOD -> FINE, Good -> Fine.

    >>> match_case("GOOD", "fine"), match_case("Good", "fine"), match_case("good", "fine"), match_case("I", "we")
    ('FINE', 'Fine', 'fine', 'We')
    """
    if len(word) > 1 and word.isupper():
        return synonym.upper()
    return synonym[:1].upper() + synonym[1:] if word[:1].isupper() else synonym
