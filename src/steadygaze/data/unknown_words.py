"""Words outside the vocabulary, read as the closest known word of a synonym table.

A word w that is not in the vocabulary V joins the group of

    the first word of its own row that is in V, or else
    the word of V in whose row w stands first; of several the most frequent

A word that is in no group of several words starts one.  The model is trained without w in any case; otherwise w would
have the one vector of all unknown words.  A wrong entry of the table then gives w the meaning of another word.
"""

from collections.abc import Collection, Mapping, Sequence

from steadygaze.data.substitutable_pairs import substitutable_pairs
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.data.synonym_tables import clean_table


def closest_known(table: Mapping[str, Sequence[str]], vocabulary: Sequence[str]) -> dict[str, str]:
    """Word outside the vocabulary -> its closest synonym inside; `vocabulary`: the most frequent word first.

    >>> closest_known({"flick": ["reel", "film"], "film": ["movie", "picture"], "pic": ["reel"]}, ["film"])
    {'flick': 'film', 'movie': 'film', 'picture': 'film'}
    """
    rows = substitutable_pairs(clean_table(table).rows)
    order = {word: place for place, word in enumerate(vocabulary)}
    best: dict[str, tuple[int, int, str]] = {}
    for word, row in rows.items():
        for rank, synonym in enumerate(row):
            if word in order and synonym not in order:
                place = (rank, order[word], word)
                best[synonym] = min(best.get(synonym, place), place)
    names = {word: name for word, (_, _, name) in best.items()}
    own = {word: next((name for name in row if name in order), None) for word, row in rows.items() if word not in order}
    names |= {word: name for word, name in own.items() if name is not None}
    return dict(sorted(names.items()))


def with_unknown_words(
    groups: SynonymGroups | None, table: Mapping[str, Sequence[str]], vocabulary: Collection[str]
) -> SynonymGroups:
    """The groups, with unknown words in that of their closest known synonym.

    `vocabulary`: of a model with these groups, the most frequent word first.

    >>> groups = SynonymGroups((("good", "fine"),))
    >>> with_unknown_words(groups, {"great": ["fine"], "flick": ["film"]}, ["film", "good"]).groups
    (('good', 'fine', 'great'), ('film', 'flick'))
    """
    groups = SynonymGroups(()) if groups is None else groups
    known = set(vocabulary)
    readable = [word for name in vocabulary for word in groups.members(name)]
    names = {word: groups.representative(name) for word, name in closest_known(table, readable).items()}
    merged: dict[str, list[str]] = {}
    for group in groups.groups:
        merged[group[0]] = [word for word in group if group[0] in known or word not in names]
    for word, name in names.items():
        merged.setdefault(name, [name]).append(word)
    return SynonymGroups(tuple(tuple(group) for group in merged.values() if len(group) > 1), groups.spellings)
