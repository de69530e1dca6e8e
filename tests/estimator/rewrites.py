"""Random texts, and their rewrites inside synonym groups."""

import random
import re
from collections.abc import Sequence

from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.data.synonym_rewriting import match_case

GROUPS = SynonymGroups(
    (
        ("good", "fine", "splendid", "superb"),
        ("film", "movie", "picture"),
        ("bad", "dreadful", "lousy"),
        ("café", "bistro"),
        ("wow", "gosh"),  # in no training text
    )
)
OTHERS = ["the", "was", "and", "plot", "a", "i", "dull", "unheard", "3", "o'clock", "thought", "déjà"]
MARKS = [" ", " ", " ", " ", ", ", ". ", "! ", "-", " (", ") ", '"', "'s ", "n't ", " #", "…", "\n", "  ", " 😀 "]


def random_text(rng: random.Random, groups: SynonymGroups = GROUPS, most: int = 12) -> str:
    words = [*groups.representatives, *OTHERS]
    parts = [rng.choice([str.lower, str.title, str.upper])(rng.choice(words)) for _ in range(rng.randint(1, most))]
    return "".join(part + rng.choice(MARKS) for part in parts)


def rewrite(text: str, rng: random.Random, groups: SynonymGroups = GROUPS, *, recase: bool = False) -> str:
    """Replace every word of a group by a random one; `recase`: also in random case."""

    def replaced(match: re.Match[str]) -> str:
        word = match[0]
        if word.lower() not in groups.representatives:
            return word
        other = match_case(word, rng.choice(groups.members(word)))
        return rng.choice([str.lower, str.title, str.upper])(other) if recase else other

    # "n't" and "'s" are words of their own; "o'clock" is one word
    return re.sub(r"(?:(?!n't)[^\W\d_])+(?:'(?!s\b)[^\W\d_]+)?", replaced, text)


def rewrites(texts: Sequence[str], seed: int, **options: bool) -> list[str]:
    rng = random.Random(seed)
    return [rewrite(text, rng, **options) for text in texts]
