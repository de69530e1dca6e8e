"""SynonymGroups: groups of synonyms that a model reads as one word, their representative.

Groups are built from a synonym table.  Words are taken by falling frequency, ties in the order of the alphabet.  A word
joins the group whose representative is its closest mutual neighbor, or else starts a new group:

    star     mutual neighbor of the representative
    half     also of at least half of the members
    clique   also of all members
    linked   groups of `star`, merged where enough pairs connect them

`linked` counts an ungrouped word as a group of one.  It merges two groups if at least as many pairs of mutual neighbors
connect them as the smaller one has words, and the result has at most 32 words.  The merge that keeps the most
substitutions inside a group comes first.  Word a occurs in n(a) texts, and each of its neighbors N(a) is as likely:

    gain(G, H)  =  Σ over pairs a ∈ G, b ∈ H   n(a) / |N(a)|  +  n(b) / |N(b)|

Two words are mutual neighbors if each has the other as a synonym.  A word without a row in the table agrees with every
row that names it.  A word joins no group with a word from which it must be separate.

Words are matched in lower case.  A word with anything but letters and accents is not grouped, because an exchange with
another word could change how its text is split.  Single letters and words in scripts without spaces are not grouped
either.

Related work: synonym encoding (Wang et al. 2021, arXiv:1909.06723) and robust encodings (Jones et al. 2020,
arXiv:2005.01229), which defend labels.
"""

import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, Literal, get_args

from steadygaze.core.errors import UserError, unknown
from steadygaze.core.untrusted_files import digest_json, parse_json, read_object_or_empty, read_text
from steadygaze.data.typos import TypoIndex
from steadygaze.data.word_segmentation import LETTER

Rule = Literal["star", "half", "clique", "linked"]
RULES: tuple[Rule, ...] = get_args(Rule)
FORMAT = "steadygaze synonym groups"
UNSTABLE = frozenset(("http", "https", "www", "re", "ve", "ll"))
"""Words that are split differently beside an apostrophe, a period or a colon."""
MOST_LINKED = 32
"""Most words of a group that `linked` makes of two."""


@dataclass(frozen=True)
class SynonymGroups:
    """Groups of synonyms.

    Examples
    --------
    >>> groups = SynonymGroups((("movie", "film", "picture"), ("good", "fine")))
    >>> groups.representative("Film"), groups.members("film"), groups.representative("bad")
    ('movie', ('movie', 'film', 'picture'), 'bad')
    """

    groups: tuple[tuple[str, ...], ...]
    """Words of each group in lower case, the representative first."""
    spellings: tuple[str, ...] = ()
    """Words by falling frequency.  A word outside of them and of the groups is read as the most frequent one that is
    one typo away (typos.py).  Empty: every word is read as it is written."""

    def __post_init__(self) -> None:
        words = [word for group in self.groups for word in group]
        for word in (*words, *self.spellings):
            if fold_word(word) != word:
                raise UserError(
                    f"synonym groups: {word!r:.40} cannot be in a group; words are in lower case and have at least two "
                    f"letters, nothing else, and {', '.join(sorted(UNSTABLE))} are not allowed"
                )
        for names, problem in ((words, "in two groups, or twice in one"), (self.spellings, "twice in the spellings")):
            if len(set(names)) < len(names):
                duplicate = Counter(names).most_common(1)[0][0]
                raise UserError(f"synonym groups: {duplicate!r} is {problem}; remove one of them")
        if any(len(group) < 2 for group in self.groups):
            raise UserError("synonym groups: a group needs at least two words; remove groups of one word")

    @cached_property
    def representatives(self) -> dict[str, str]:
        """Word -> representative, for every word of a group."""
        return {word: group[0] for group in self.groups for word in group}

    @cached_property
    def _members(self) -> dict[str, tuple[str, ...]]:
        return {group[0]: group for group in self.groups}

    @cached_property
    def _typos(self) -> TypoIndex:
        return TypoIndex(self.spellings)

    def representative(self, word: str) -> str:
        """The representative of a word's group.

        Parameters
        ----------
        word : str
            A word in upper or lower case.  With `spellings`, an unknown word counts as the word that it is a typo of.

        Returns
        -------
        str
            The representative in lower case; the word itself if it is in no group.
        """
        folded = fold_word(word)
        if folded is None:
            return word
        name = self.representatives.get(folded)
        if name is None and self.spellings and (spelling := self._typos.nearest(folded)) is not None:
            name = self.representatives.get(spelling, spelling)
        return word if name is None else name

    def members(self, word: str) -> tuple[str, ...]:
        """The words of a word's group.

        Parameters
        ----------
        word : str
            A word in upper or lower case.

        Returns
        -------
        tuple of str
            The representative first; only the word itself if it is in no group.
        """
        return self._members.get(self.representative(word), (word,))

    @property
    def digest(self) -> str:
        """SHA-256 of the groups."""
        return digest_json([self.groups, *([self.spellings] if self.spellings else [])])

    @property
    def summary(self) -> str:
        """Number of groups and words, and the digest."""
        typos = f", typos of {len(self.spellings):,} words" if self.spellings else ""
        return f"{len(self.groups):,} groups of {len(self.representatives):,} words{typos}, SHA-256 {self.digest}"

    def to_json(self) -> str:
        """The groups as JSON, one group per line.

        Returns
        -------
        str
            The contents of a file of groups.
        """
        rows = ",\n".join(f"  {json.dumps(group, ensure_ascii=False)}" for group in self.groups)
        spellings = f', "spellings": {json.dumps(self.spellings, ensure_ascii=False)}' if self.spellings else ""
        return f'{{"format": "{FORMAT}", "groups": [\n{rows}\n]{spellings}}}\n'

    @staticmethod
    def from_json(text: str | bytes, name: object = "synonym groups") -> "SynonymGroups":
        """Read groups from JSON.

        Parameters
        ----------
        text : str or bytes
            The result of `to_json`.
        name : object, default="synonym groups"
            Name of the file, for error messages.

        Returns
        -------
        SynonymGroups
            The groups.
        """
        values = parse_json(text, name)
        groups: Any = values.get("groups") if isinstance(values, dict) and values.get("format") == FORMAT else None
        spellings: Any = values.get("spellings", []) if isinstance(values, dict) else None
        if not isinstance(groups, list) or not all(map(_is_list_of_strings, [*groups, spellings])):
            raise UserError(f'{name} has no synonym groups: it needs {{"format": "{FORMAT}", "groups": [["good", …]]}}')
        return SynonymGroups(tuple(map(tuple, groups)), tuple(spellings))


def read_group_file(file: Path) -> SynonymGroups | None:
    """The groups of a JSON file; None: it is another file, or none."""
    if file.suffix != ".json" or read_object_or_empty(file).get("format") != FORMAT:
        return None
    return SynonymGroups.from_json(read_text(file), file)


def _is_list_of_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def fold_word(word: str) -> str | None:
    """The word as tokenizers match it, in lower case and composed; None: it cannot be in a group.

    >>> [fold_word(word) for word in ("Film", "well-made", "o'clock", "u", "R2D2", "电影")]
    ['film', None, None, None, None, None]
    """
    # Letter by letter, as the tokenizers do: str.lower() treats a sigma by its position.
    folded = unicodedata.normalize("NFC", "".join(letter.lower() for letter in word))
    if folded.isascii():
        return folded if len(folded) > 1 and folded.isalpha() and folded not in UNSTABLE else None
    kinds = [unicodedata.category(letter)[0] for letter in folded]
    if len(folded) < 2 or kinds[0] != "L" or not set(kinds) <= {"L", "M"} or LETTER.search(folded):
        return None
    return folded


def build_groups(
    table: Mapping[str, Sequence[str]],
    frequency: Mapping[str, int] | None = None,
    rule: Rule = "star",
    separate_pairs: Iterable[tuple[str, str]] = (),
) -> SynonymGroups:
    """Group the words of a table; `frequency`: the number of training texts with each word.

    The words of the table are as `fold_word` returns them; `group_synonyms` prepares a table.  No group contains both
    words of a pair in `separate_pairs`.

    >>> table = {"movie": ["film", "show"], "film": ["movie"], "show": ["movie", "display"], "display": ["show"]}
    >>> build_groups(table, {"film": 9, "show": 3}).groups
    (('film', 'movie'), ('show', 'display'))
    """
    if rule not in RULES:
        raise unknown("group rule", rule, RULES)
    neighbors = mutual_neighbors(table)
    counts = frequency or {}
    separate: defaultdict[str, set[str]] = defaultdict(set)
    for first, second in separate_pairs:
        separate[first].add(second)
        separate[second].add(first)
    groups: dict[str, list[str]] = {}
    words = sorted(neighbors, key=lambda word: (-counts.get(word, 0), word))
    for word in words:
        representative = next(
            (
                name
                for name in neighbors[word]
                if name in groups
                and separate[word].isdisjoint(groups[name])
                and _accepts(groups[name], neighbors[word], rule)
            ),
            None,
        )
        if representative is None:
            groups[word] = [word]
        else:
            groups[representative].append(word)
    merged = list(groups.values())
    if rule == "linked":
        rank = {word: i for i, word in enumerate(words)}
        rows = {word: sorted(neighbors[word], key=rank.__getitem__) for word in words}
        merged = _merge_linked(merged, rows, counts, separate)
        merged = [sorted(group, key=rank.__getitem__) for group in merged]
    return SynonymGroups(tuple(tuple(group) for group in merged if len(group) > 1))


def _merge_linked(
    groups: Sequence[Sequence[str]],
    neighbors: Mapping[str, Sequence[str]],
    counts: Mapping[str, int],
    separate: Mapping[str, set[str]],
) -> list[list[str]]:
    """Merge groups with many pairs of mutual neighbors between them, the greatest gain first."""
    members = {i: list(group) for i, group in enumerate(groups)}
    group_of = {word: i for i, group in members.items() for word in group}
    pairs: defaultdict[int, Counter[int]] = defaultdict(Counter)  # numbers of pairs, the same in both directions
    gains: defaultdict[int, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
    for word, row in neighbors.items():
        for name in row:
            first, second = group_of[word], group_of[name]
            if first != second:
                pairs[first][second] += 1
                gains[first][second] += counts.get(word, 0) / len(row)
                gains[second][first] += counts.get(word, 0) / len(row)
    candidates: list[tuple[float, int, int, int, int]] = []

    def propose(first: int, second: int) -> None:
        sizes = len(members[first]), len(members[second])
        if sum(sizes) <= MOST_LINKED and pairs[first][second] >= min(sizes):
            heappush(candidates, (-gains[first][second], first, second, *sizes))

    for first in list(pairs):
        for second in pairs[first]:
            if first < second:
                propose(first, second)
    while candidates:
        _, first, second, *sizes = heappop(candidates)
        current = [len(members[group]) if group in members else 0 for group in (first, second)]
        if sizes != current or any(not separate[w].isdisjoint(members[second]) for w in members[first]):
            continue  # a group that has grown since was proposed again
        members[first] += members.pop(second)
        for other in pairs.pop(second):
            number, gain = pairs[other].pop(second), gains[other].pop(second)
            if other != first:
                pairs[first][other] += number
                pairs[other][first] += number
                gains[first][other] += gain
                gains[other][first] += gain
        for other in pairs[first]:
            propose(*sorted((first, other)))
    return list(members.values())


def mutual_neighbors(table: Mapping[str, Sequence[str]]) -> dict[str, dict[str, None]]:
    """Word -> its mutual neighbors as the keys of a dict, the closest first."""
    rows = {word: dict.fromkeys(name for name in row if name != word) for word, row in table.items()}
    without_row: dict[str, dict[str, None]] = {}
    for word, row in rows.items():
        for synonym in row:
            if synonym not in rows:
                without_row.setdefault(synonym, {})[word] = None
    known = {**rows, **without_row}
    return {word: {name: None for name in row if word in known[name]} for word, row in known.items()}


def _accepts(group: Sequence[str], neighbors: Mapping[str, None], rule: Rule) -> bool:
    """True if a word with these neighbors, which include the representative, may join the group."""
    share = {"star": 0.0, "linked": 0.0, "half": 0.5, "clique": 1.0}[rule]
    return sum(member in neighbors for member in group) >= share * len(group)
