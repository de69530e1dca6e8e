"""Inflected forms of words by WordNet: which words of a vocabulary have the same lemma.

The forms of a lemma are regular (film: films, filmed, filming), or those of WordNet's lists of exceptions (go: went,
gone).  A word with an entry of its own is its own lemma: `seed` is not a form of `see`, and the adjective `boring` not
one of `bore`.  A form of several lemmas (leaves: leaf, leave) belongs to the most frequent one.

WordNet: Miller 1995, https://doi.org/10.1145/219717.219748; the rules are those of morphy(7WN), read backward.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from steadygaze.data.substitutable_pairs import FUNCTION_WORDS, VOWELS
from steadygaze.data.synonym_formats import INFLECTIONS, database_words, exceptions
from steadygaze.data.synonym_groups import fold_word

LONGEST_COMPARED = 6
"""Letters of the longest adjective with forms in -er and -est; others are compared by `more`."""


def inflected_forms(frequency: Mapping[str, int], folder: Path) -> dict[str, list[str]]:
    """The lemmas with a form that occurs, each with all its forms.  `frequency`: number of texts with each word."""
    entries = {part: database_words(folder, part) for part in INFLECTIONS}
    lemmas = frozenset().union(*entries.values())
    candidates: dict[str, set[str]] = {}
    for part, words in entries.items():
        irregular = exceptions(folder / f"{part}.exc")
        for lemma in words:
            forms = {*irregular.get(lemma, ()), *regular_forms(lemma, part, irregular.get(lemma, ()))}
            if any(word in frequency for word in (lemma, *forms)):
                candidates.setdefault(lemma, set()).update(forms - lemmas)
    groups: dict[str, list[str]] = {}
    taken: set[str] = set()
    for lemma in sorted(candidates, key=lambda lemma: (-frequency.get(lemma, 0), lemma)):
        forms = {form for form in candidates[lemma] - taken if _is_content_word(form)}
        taken |= forms
        if forms and _is_content_word(lemma):
            groups[lemma] = sorted(forms)
    return groups


def regular_forms(lemma: str, part: str, irregular: Sequence[str] = ()) -> list[str]:
    """Regular forms of a lemma, except those that its irregular forms replace.

    >>> regular_forms("try", "verb"), regular_forms("give", "verb", ["gave", "given"]), regular_forms("box", "noun")
    (['tries', 'tried', 'trying'], ['gives', 'giving'], ['boxes'])
    """
    bare = lemma[:-1] if lemma.endswith("e") else lemma
    soft = f"{lemma[:-1]}i" if lemma.endswith("y") and lemma[-2:-1] not in VOWELS else bare
    if part == "adj":
        compared = len(lemma) <= LONGEST_COMPARED and not lemma.endswith(("ed", "ing")) and not irregular
        return [f"{soft}er", f"{soft}est"] if compared else []
    third = f"{soft}es" if soft.endswith("i") or lemma.endswith(("s", "x", "z", "ch", "sh")) else f"{lemma}s"
    if part == "noun":
        return [] if irregular else [third]
    if part != "verb":
        return []
    participle = f"{lemma if lemma.endswith(('ee', 'oe', 'ye')) else bare}ing"
    forms = [third, f"{soft}ed", participle]
    if irregular:  # past forms, and possibly the participle
        forms = [third] if any(form.endswith("ing") for form in irregular) else [third, participle]
    return forms


def _is_content_word(word: str) -> bool:
    return fold_word(word) == word and word not in FUNCTION_WORDS
