"""Typos: words that are one typo away from the words of a list.

A typo of a word of at least four letters keeps the first and the last letter, as in robust encodings (Jones et al.,
ACL 2020, arXiv:2005.01229, https://aclanthology.org/2020.acl-main.245), and

    inserts, leaves out or substitutes one of the letters between them       film -> fiilm, flm, fulm
    or permutes these letters                                                brilliant -> brlliiant

Two words are one typo apart exactly if one is the other without a letter, or if they share a key.  One key is the word
with one inner letter as a wildcard (substitution).  The other is the first letter, the sorted inner letters and the
last letter (permutation).
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

SHORTEST = 4
"""Letters of the shortest word that is recognized by its typos."""


class TypoIndex:
    """Words by falling frequency, to be found by their typos.

    >>> index = TypoIndex(["film", "brilliant", "firm", "a"])
    >>> [index.nearest(word) for word in ("flim", "fim", "firlm", "brlliiant", "film", "milf", "fi")]
    ['film', 'film', 'film', 'brilliant', None, None, None]
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words

    @cached_property
    def _ranks(self) -> dict[str, int]:
        return {word: rank for rank, word in enumerate(self._words)}

    @cached_property
    def _index(self) -> dict[str, list[int]]:
        index: dict[str, list[int]] = defaultdict(list)
        for rank, word in enumerate(self._words):
            if len(word) >= SHORTEST:
                for key in {*shared_keys(word), *without_letter(word)}:
                    index[key].append(rank)
        return dict(index)

    def nearest(self, word: str) -> str | None:
        """The most frequent word of the list that is one typo away; None: the word is in the list, or there is none."""
        if word in self._ranks:
            return None
        rank = min(self._neighbors(word), default=None)
        return None if rank is None else self._words[rank]

    def _neighbors(self, word: str) -> Iterator[int]:
        for key in (word, *shared_keys(word)):
            yield from self._index.get(key, ())
        for shorter in without_letter(word):
            if len(shorter) >= SHORTEST and shorter in self._ranks:
                yield self._ranks[shorter]


def shared_keys(word: str) -> Iterator[str]:
    """Keys that words of the same length share if they are one typo apart."""
    if len(word) > 2:
        yield f"{word[0]} {''.join(sorted(word[1:-1]))} {word[-1]}"
    for position in range(1, len(word) - 1):
        yield f"{word[:position]}*{word[position + 1 :]}"


def without_letter(word: str) -> Iterator[str]:
    """The word without one of its inner letters."""
    for position in range(1, len(word) - 1):
        yield word[:position] + word[position + 1 :]
