"""The words that decide a planted review: what is talked about, what is said of it, and what turns that round.

Rows are synonym sets; two facing rows of opinions are antonyms, word for word.  Adjectives and things of a set, and of
the set that faces it, begin alike (all with a vowel or all with a consonant), so that swapping one for another never
needs another article.  None of these words is among the neutral words of `words` or in the fixed text of
`frames`, except the negators, which also stand in other clauses, where they turn nothing round.
"""

from collections.abc import Iterable

ASPECTS = ("appearance", "aroma", "palate")

NOUNS: dict[str, tuple[tuple[str, ...], ...]] = {
    "appearance": (
        ("appearance", "look"),
        ("colour", "hue", "tint", "shade"),
        ("head", "foam", "froth"),
    ),
    "aroma": (
        ("aroma", "smell", "nose", "scent"),
        ("bouquet", "fragrance", "perfume"),
        ("odour", "whiff"),
    ),
    "palate": (
        ("palate", "mouthfeel", "feel"),
        ("body", "texture", "consistency"),
        ("carbonation", "fizz", "sparkle"),
    ),
}

_ADJECTIVES = (
    (
        "wonderful marvellous superb fantastic terrific splendid magnificent brilliant glorious",
        "dreadful terrible horrible horrid ghastly dismal lousy miserable wretched",
    ),
    ("lovely pleasant delightful charming pleasing", "nasty repulsive disgusting vile displeasing"),
    ("fascinating captivating compelling gripping", "dull boring tedious dreary"),
    ("satisfying rewarding gratifying first-rate", "disappointing frustrating mediocre second-rate"),
    ("excellent outstanding exquisite exceptional amazing", "awful atrocious abysmal appalling inferior"),
    ("enjoyable appealing inviting attractive", "unpleasant unappealing uninviting unattractive"),
)
_PAST = (("impressed delighted pleased charmed thrilled", "disappointed bored annoyed repelled dismayed"),)
_BASE = (("impress delight please charm thrill", "disappoint bore annoy repel dismay"),)
_THINGS = (("joy treat triumph success gem", "mess letdown disaster failure flop"),)

_OWN = {
    "appearance": (
        "gorgeous handsome beautiful picturesque radiant stunning striking photogenic",
        "hideous murky drab grubby scruffy muddy dingy shabby",
    ),
    "aroma": (
        "heavenly fresh tempting mouth-watering divine clean seductive lively",
        "stale musty foul rank putrid mouldy sweaty sickly",
    ),
    "palate": (
        "smooth silky velvety luscious refreshing luxurious seamless mellow",
        "watery harsh cloying thin scratchy gritty lifeless slimy",
    ),
}
_SHARED = {"adjective": _ADJECTIVES, "past": _PAST, "base": _BASE, "thing": _THINGS}
_FACING = [pair for pairs in (*_SHARED.values(), _OWN.values()) for pair in pairs]


def _side(pairs: Iterable[tuple[str, str]], positive: bool) -> tuple[str, ...]:
    return tuple(word for pair in pairs for word in pair[0 if positive else 1].split())


OPINIONS = {slot: {praise: _side(pairs, praise) for praise in (True, False)} for slot, pairs in _SHARED.items()}
"""Slot of a frame -> is it praise? -> the words that may be said there of any aspect."""
OWN_ADJECTIVES = {aspect: {praise: _side([pair], praise) for praise in (True, False)} for aspect, pair in _OWN.items()}
"""Aspect -> is it praise? -> the adjectives that are said of it alone."""

NEGATORS: dict[str, tuple[str, ...]] = {
    "not": (
        *("not", "hardly", "scarcely", "never", "far from"),
        *("anything but", "by no means", "nowhere near", "in no way"),
    ),
    "far_from": ("far from", "anything but", "by no means", "hardly"),
    "hardly": ("hardly", "scarcely", "barely", "never"),
    "would_not": ("not", "never", "hardly", "scarcely"),
    "does_not": ("not",),
    "isn't": ("isn't", "wasn't"),
    "didn't": ("didn't", "couldn't", "wouldn't"),
    "nobody": ("nobody", "no one"),
    "failed": ("failed", "fails"),
    "doubts": ("doubts", "doubted", "denies", "denied"),
    "untrue": ("untrue", "wrong", "misleading", "inaccurate"),
}
"""Slot of a frame -> the phrases that may stand there; each turns the opinion of its clause into its opposite."""

POLARITY = {word: praise for praise in (True, False) for word in _side(_FACING, praise)}
ASPECT_OF = {noun: aspect for aspect, rows in NOUNS.items() for row in rows for noun in row}
ANTONYMS = dict(
    both
    for pair in _FACING
    for words, others in (pair, pair[::-1])
    for both in zip(words.split(), others.split(), strict=True)
)


def _synonyms() -> dict[str, tuple[str, ...]]:
    rows = [row for rows in NOUNS.values() for row in rows]
    rows += [tuple(side.split()) for pair in _FACING for side in pair]
    return {word: tuple(other for other in row if other != word) for row in rows for word in row}


SYNONYMS = _synonyms()
"""Opinion word or aspect noun -> words that may replace it without changing any label."""
