"""Labels before training: the number of texts of each class, near-duplicate labels and rare classes.

Near-duplicates are probably one class that is written in two ways:

    spelling   equal but for case, Unicode normalization, white space, `_` or `-` between words, and quotes around a
               label or one of . , ; : ! at its end
    typo       one letter of a word of at least SHORTEST letters is inserted, left out, moved or substituted, but not
               the first, nor the last by another; and the rarer label has at most a fifth (TYPO_SHARE) of the texts

Numbers and single letters are not typos: `class 1` and `class 2`, `plan A` and `plan B`, `pos` and `neg`.
Frequencies tell a typo, `postive`, from words that are classes of their own, such as `contact` and `contract`.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from steadygaze.core.types import Label
from steadygaze.data.typos import SHORTEST, without_letter

TYPO_SHARE = 0.2
RARE = 5
"""Texts below which a class is rare: a model hardly learns it, and a tenth for validation has none of its texts."""
LONGEST_NAME = 100
"""Characters of the longest label that is compared with others: longer ones are texts."""
MOST_CLASSES, MOST_GROUPS, LONGEST = 20, 3, 30
"""Classes, groups and characters of a label in one sentence."""
MARKS = re.compile(r"""\A["'`“”‘’„«»]+|(?<=\w)[.,;:!]?["'`“”‘’„«»]*\Z""")
"""Quotes around a label, and a mark at the end of a word; `C++` and `!` are classes of their own."""
Words = tuple[str, ...]
WORD = re.compile(r"[^\W\d_]+|\d+|[^\w\s]")
SEPARATOR = re.compile(r"(?<!\d) | (?!\d)|(?<=[^\W\d_])-(?=[^\W\d_])")  # 1 2 is not 12, and class -1 is not class 1


def count_labels(labels: Iterable[Label | None]) -> Counter[Label]:
    """Return the number of texts of each class, the most frequent first."""
    counts = Counter(label for label in labels if label is not None)
    return Counter(dict(counts.most_common()))


def near_duplicates(counts: Mapping[Label, int]) -> list[list[Label]]:
    """Return groups of labels that are probably one class, the most frequent first.

    >>> near_duplicates({"ok": 50, "Ok": 3, "abusive": 40, "abusve": 2})
    [['ok', 'Ok'], ['abusive', 'abusve']]
    >>> near_duplicates({"class 1": 50, "class 2": 3, "contact": 9, "contract": 8, "pos": 20, "neg": 1})
    []
    """
    names = sorted((label for label in counts if isinstance(label, str)), key=lambda name: -counts[name])
    spelled = defaultdict[str, list[str]](list)
    for name in names:
        spelled[_spelling(name)].append(name)
    twin = {other: first for first, *others in spelled.values() for other in others}  # a label -> a more frequent one
    has_frequent = bool(names) and TYPO_SHARE * counts[names[0]] >= 1
    for first, other in _typos([name for name in names if len(name) <= LONGEST_NAME] if has_frequent else ()):
        if counts[other] <= TYPO_SHARE * counts[first]:
            twin.setdefault(other, first)
    groups: dict[str, list[Label]] = {}
    for name in names:  # a twin comes before its label
        root = twin[name] = twin.get(twin.get(name, name), twin.get(name, name))
        groups.setdefault(root, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _normal(label: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", label).casefold())


def _spelling(label: str) -> str:
    """Return what labels of one spelling have in common."""
    visible = "".join(character for character in _normal(label) if unicodedata.category(character) != "Cf")
    spaced = " ".join(visible.replace("_", " ").split())
    return SEPARATOR.sub("", MARKS.sub("", spaced) or spaced)


def _typos(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield labels that are one typo apart, the earlier one of `names` first."""
    index = defaultdict[Words, list[str]](list)
    for name in names:
        for key in _variants(name, lambda word: {word, *without_letter(word)}):
            index[key].append(name)
    rank = {name: position for position, name in enumerate(names)}
    for first, *others in index.values():
        yield from ((first, other) for other in others)
    for name in names:
        for key in _variants(name, lambda word: {word[:-1]}):
            for other in index.get(key, ()):
                yield (name, other) if rank[name] < rank[other] else (other, name)


def _variants(label: str, change: Callable[[str], Iterable[str]]) -> Iterator[Words]:
    """Yield the words of a label, with each change of one of them."""
    words = WORD.findall(_normal(label))
    for position, word in enumerate(words):
        if len(word) >= SHORTEST and word.isalpha():
            for changed in change(word):
                yield *words[:position], f"{changed}*", *words[position + 1 :]


def near_duplicate_sentence(counts: Mapping[Label, int]) -> str:
    """Name near-duplicates and their numbers of texts; '' if there are none."""
    groups = near_duplicates(counts)
    if not groups:
        return ""
    listed = "; ".join(_counted(group, counts) for group in groups[:MOST_GROUPS])
    more = f"; and {len(groups) - MOST_GROUPS} more" if len(groups) > MOST_GROUPS else ""
    return f"some labels are probably one class in several spellings: {listed}{more}"


def rare_sentence(counts: Mapping[Label, int]) -> str:
    """Name the classes with fewer than RARE texts; '' if there are none."""
    rare = [label for label in counts if counts[label] < RARE]
    if not rare:
        return ""
    verb = "classes have" if len(rare) > 1 else "class has"
    return f"{len(rare)} {verb} fewer than {RARE} training texts, too few to learn: {_counted(rare, counts)}"


def count_sentence(counts: Mapping[Label, int]) -> str:
    """List the classes and their numbers of training texts.

    >>> count_sentence({"ok": 1200, "abusive": 40})
    "2 classes: 'ok' 1,200, 'abusive' 40"
    """
    listed = ", ".join(f"{_shown(label)} {counts[label]:,}" for label in list(counts)[:MOST_CLASSES])
    more = f" … the rarest is {_shown(list(counts)[-1])} {min(counts.values()):,}" if len(counts) > MOST_CLASSES else ""
    return f"{len(counts)} class{'es' * (len(counts) != 1)}: {listed}{more}"


def _counted(labels: Sequence[Label], counts: Mapping[Label, int]) -> str:
    """List labels, as `'ok' (57 texts), 'Ok' (1 text)`; those that look alike by their code points."""
    looks = {unicodedata.normalize("NFKC", str(label)) for label in labels}
    show = ascii if len(looks) < len(labels) else repr
    shown = [f"{show(label)[:LONGEST]} ({counts[label]:,} text{'s' * (counts[label] != 1)})" for label in labels]
    return ", ".join(shown[:MOST_CLASSES]) + (" …" if len(shown) > MOST_CLASSES else "")


def _shown(label: Label) -> str:
    return f"{label!r:.{LONGEST}}"
