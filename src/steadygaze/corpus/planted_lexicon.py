"""The words that decide a planted review: what is talked about, what is said of it, and what turns that round.

Rows are synonym sets; two facing rows of opinions are antonyms, word for word.  The words of a set, and of the set that
faces it, begin alike (all with a vowel or all with a consonant), so that swapping one for another never needs a new "a" or
"an".  No word here occurs among the neutral words of `planted_words` or in the fixed text of `planted_frames`, except the
negators, which also stand in other clauses, where they turn nothing round.
"""

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

_FACING = {"adjective": _ADJECTIVES, "past": _PAST, "base": _BASE, "thing": _THINGS}

OPINIONS: dict[str, dict[bool, tuple[str, ...]]] = {
    slot: {
        positive: tuple(word for pair in pairs for word in pair[0 if positive else 1].split())
        for positive in (True, False)
    }
    for slot, pairs in _FACING.items()
}
"""Slot of a frame -> is it praise? -> the words that may stand there."""

NEGATORS: dict[str, tuple[str, ...]] = {
    "not": (
        *("not", "hardly", "scarcely", "barely", "never", "far from"),
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

POLARITY = {word: positive for slot in OPINIONS.values() for positive, words in slot.items() for word in words}
ASPECT_OF = {noun: aspect for aspect, rows in NOUNS.items() for row in rows for noun in row}
ANTONYMS = {
    word: other
    for pairs in _FACING.values()
    for pair in pairs
    for words, others in (pair, pair[::-1])
    for word, other in zip(words.split(), others.split(), strict=True)
}


def _synonyms() -> dict[str, tuple[str, ...]]:
    rows = [row for rows in NOUNS.values() for row in rows]
    rows += [tuple(side.split()) for pairs in _FACING.values() for pair in pairs for side in pair]
    return {word: tuple(other for other in row if other != word) for row in rows for word in row}


SYNONYMS: dict[str, tuple[str, ...]] = _synonyms()
"""Opinion word or aspect noun -> words that may replace it without changing any label."""
