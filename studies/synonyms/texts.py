"""Rewrites of texts: synonyms, typos and deletions of three words."""

import re
from collections.abc import Mapping, Sequence

import numpy as np

WORD = re.compile(r"(?<![\w'’-])[A-Za-z]{2,}(?![\w'’-])")
SUBSTITUTIONS = 3

Table = dict[str, list[str]]


def substitute(text: str, table: Mapping[str, Sequence[str]], seed: int) -> str:
    """Three words replaced by one of their synonyms each."""
    rng = np.random.default_rng((seed, len(text)))
    words = [match for match in WORD.finditer(text) if table.get(match.group().lower())]
    positions = {words[i].start() for i in rng.permutation(len(words))[:SUBSTITUTIONS]}

    def synonym(match: re.Match[str]) -> str:
        row = table.get(match.group().lower(), [])
        return str(rng.choice(row)) if match.start() in positions else match.group()

    return WORD.sub(synonym, text)


def misspell(text: str, seed: int) -> str:
    """Two neighboring letters inside each of three words exchanged."""
    rng = np.random.default_rng((seed, len(text)))
    words = [match for match in WORD.finditer(text) if len(match.group()) > 3]
    positions = {words[i].start() for i in rng.permutation(len(words))[:SUBSTITUTIONS]}

    def typo(match: re.Match[str]) -> str:
        word = match.group()
        if match.start() not in positions:
            return word
        i = int(rng.integers(1, len(word) - 2))
        return word[:i] + word[i + 1] + word[i] + word[i + 2 :]

    return WORD.sub(typo, text)


def delete(text: str, seed: int) -> str:
    """Three words deleted; the text keeps at least one."""
    rng = np.random.default_rng((seed, len(text)))
    words = list(WORD.finditer(text))
    positions = {words[i].start() for i in rng.permutation(len(words))[: min(SUBSTITUTIONS, len(words) - 1)]}
    return WORD.sub(lambda match: "" if match.start() in positions else match.group(), text) if words else text


def without(table: Mapping[str, Sequence[str]], other: Mapping[str, Sequence[str]]) -> Table:
    """The pairs of a table that another does not have, in either order."""
    pairs = {(word, synonym) for word, row in other.items() for synonym in row}
    return {word: [s for s in row if (word, s) not in pairs and (s, word) not in pairs] for word, row in table.items()}
