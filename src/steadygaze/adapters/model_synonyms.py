"""Synonyms of the words of a model.

steadygaze, Hugging Face   synonyms in the model's vocabulary
a black box                new pieces with the case of the word: "good " -> "fine ", "GOOD!" -> "FINE!"

Without a table no word has a synonym: neighbors in a vector space are not synonyms ("good" is close to "bad").
data/substitutable_pairs.py excludes some pairs of an unverified table.  A capitalized word of a black box may be a name
and is not substituted; a vocabulary in lower case does not show names.

In a model with synonym groups, the synonyms of a group are those of its representative, then of its other words.  A
synonym of the same group substitutes a word by itself.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch

from steadygaze.adapters.black_box import TextWords
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.data.substitutable_pairs import substitutable_pairs
from steadygaze.data.synonym_rewriting import match_case
from steadygaze.data.synonym_tables import Table, as_table
from steadygaze.data.verified_tables import read_verification
from steadygaze.data.vocabulary_lexicon import representative_table, vocabulary_lexicon
from steadygaze.perturbations.word_substitution import MAX_SYNONYMS, Synonyms

NEGATION = ("n't", "n’t")
"""Continues the word before it: "do" in "don't" is not substituted."""


def model_synonyms(adapter: ModelAdapter, synonyms: str | Path | Table, texts: Sequence[str] = ()) -> Synonyms:
    """Synonyms from a file or a mapping.

    `texts`: the texts in which words will be substituted, for a black box.
    """
    folded = not isinstance(adapter.tokens, TextWords) and adapter.tokens.kind == "words"
    table, origin = as_table(synonyms, folded=folded), _origin(synonyms)
    pairs = table if origin == "verified" else substitutable_pairs(table)
    if isinstance(adapter.tokens, TextWords):
        return replace(_text_synonyms(adapter.tokens, pairs, texts), origin=origin)
    lexicon = vocabulary_lexicon(adapter.tokens.vocabulary, adapter.tokens.kind)
    groups = getattr(adapter.tokens, "synonym_groups", None)
    ids, count = lexicon.table(representative_table(pairs, groups), MAX_SYNONYMS, same_group=True)
    values, counts, continues, words = map(torch.from_numpy, (ids, count, lexicon.continues, lexicon.words))
    # The row of a representative has synonyms of other words of its group, which no filter tried in its place.
    return Synonyms(values, counts, continues, words, "table" if groups else origin)


def _origin(synonyms: str | Path | Table) -> Literal["table", "verified"]:
    if isinstance(synonyms, str | Path) and read_verification(synonyms) is not None:
        return "verified"
    return "table"


def _text_synonyms(tokens: TextWords, table: Table, texts: Sequence[str]) -> Synonyms:
    tokens.place(texts)
    synonyms: dict[str, list[str]] = {}
    for word, row in table.items():
        synonyms.setdefault(word.lower(), []).extend(row)
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
    added = [(synonym, tokens.after_space(i)) for i, row in enumerate(substitutes) for synonym in row[:MAX_SYNONYMS]]
    flat = iter(tokens.add_pieces(*zip(*added, strict=True)) if added else ())
    size = len(tokens.vocabulary)
    ids, count = torch.zeros(size, MAX_SYNONYMS, dtype=torch.long), torch.zeros(size, dtype=torch.long)
    for index, row in enumerate(substitutes):
        count[index] = len(row[:MAX_SYNONYMS])
        ids[index, : count[index]] = torch.tensor([next(flat) for _ in row[:MAX_SYNONYMS]], dtype=torch.long)
    continues = torch.zeros(size, dtype=torch.bool)
    continues[: len(words)] = torch.tensor([word.lower() in NEGATION for word in words])
    return Synonyms(ids, count, continues)
