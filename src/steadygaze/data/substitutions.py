"""Substitutions: the alternatives of words, and the perturbation sets of randomized smoothing.

A table allows the substitution of a word w by each of its synonyms, A(w).  Words with the same tokens are one node of
the synonym network: members of a synonym group, for example.  Two nodes are linked if the table has a pair between
them, in either direction.

The perturbation set P(w) contains the `set_size` nodes nearest to w that the model knows, in breadth-first order.  w is
one of them if the model knows it.  A connected part of at most `set_size` known nodes is the perturbation set of each
of its words, so that no substitution within it changes the sampling distribution.  SAFER (Ye, Gong & Liu 2020,
arXiv:2005.14424) also limits the sets to the nearest words of a connected part; it orders them by cosine similarity.

P depends on the word alone, never on the text.  This makes the smoothed model a function of the text.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from steadygaze.core.maths.smoothing_bounds import uniform_total_variation


@dataclass(frozen=True)
class Substitutions:
    alternatives: Mapping[str, Sequence[str]]
    """Word in lower case -> A(w), which does not contain w."""
    nodes: Mapping[str, Hashable]
    """Word of the table -> its node.  The model reads words of one node as the same tokens."""
    known: Mapping[str, bool]
    """Word of the table -> whether the vocabulary of the model covers it."""
    set_size: int
    """Largest number of nodes in a perturbation set."""
    _links: dict[Hashable, list[str]] = field(default_factory=dict)
    _names: dict[Hashable, str] = field(default_factory=dict)
    _sets: dict[Hashable, tuple[str, ...]] = field(default_factory=dict)
    _distances: dict[tuple[Hashable, Hashable], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for word, alternatives in self.alternatives.items():
            for name in (word, *alternatives):
                self._names.setdefault(self.nodes[name], name)
            self._links.setdefault(self.nodes[word], []).extend(alternatives)
        for word, alternatives in self.alternatives.items():
            for name in alternatives:
                self._links.setdefault(self.nodes[name], []).append(word)

    @property
    def pairs(self) -> int:
        """Number of pairs of a word and an alternative."""
        return sum(map(len, self.alternatives.values()))

    def perturbation_set(self, word: str) -> tuple[str, ...]:
        """P(w): one word per node, sorted; (w,) for a word outside the table."""
        if word not in self.nodes:
            return (word,)
        node = self.nodes[word]
        if node not in self._sets:
            self._sets[node] = self._nearest(node)
        return self._sets[node]

    def distance(self, word: str, name: str) -> float:
        """The total variation between P(w) and P(a)."""
        key = self.nodes[word], self.nodes[name]
        if key not in self._distances:
            self._distances[key] = uniform_total_variation(self.perturbation_set(word), self.perturbation_set(name))
        return self._distances[key]

    def _nearest(self, start: Hashable) -> tuple[str, ...]:
        reached, known = {start: None}, list[str]()
        queue = [start]
        for node in queue:  # grows
            name = self._names[node]
            if self.known[name]:
                known.append(name)
                if len(known) == self.set_size:
                    break
            for other in map(self.nodes.__getitem__, self._links[node]):
                if other not in reached:
                    reached[other] = None
                    queue.append(other)
        # Without any known node, the whole connected part is read as unknown words.
        return tuple(sorted(known)) or (min(self._names[node] for node in reached),)
