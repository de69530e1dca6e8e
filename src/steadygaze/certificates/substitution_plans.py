"""Which rewrites of a text the certificate of substitutions evaluates: all, the worst, random samples, or none."""

import hashlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from steadygaze.adapters.black_box import TextWords
from steadygaze.certificates.rewrites import Choices, TextPositions, count_rewrites, enumerate_choices, text_positions
from steadygaze.certificates.worst_rewrites import WorstRewrites, WorstRewriteSearch
from steadygaze.core.errors import UserError
from steadygaze.core.maths.smoothing_bounds import product_total_variation
from steadygaze.core.random_key import RandomKey
from steadygaze.data.substitutable_pairs import substitutable_pairs
from steadygaze.data.substitutions import Substitutions
from steadygaze.data.synonym_groups import SynonymGroups, fold_word
from steadygaze.data.synonym_rewriting import cased_alternatives, match_case
from steadygaze.data.synonym_tables import Table
from steadygaze.data.text_tokenizer import Tokens
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.results.audit_config import SubstitutionConfig
from steadygaze.results.substitution_certificates import Method

LONGEST = 2**31 - 1
"""Words per text: words that the model does not read are substituted too."""
MOST_REWRITES = 10**15
"""Larger numbers of rewrites are not counted."""


@dataclass(frozen=True)
class Plan:
    """The rewrites of a text that are to be evaluated."""

    method: Method
    texts: list[str]
    """The text itself, then the rewrites."""
    total_variation: float | None
    counts: dict[str, Any]
    """Fields of the certificate that do not depend on the outputs."""
    worst: WorstRewrites | None = None
    """Bounds over all rewrites; None: `texts` are all rewrites, samples, or the text alone."""


def _table_alternatives(table: Table) -> dict[str, list[str]]:
    """Single word -> the words that a rewrite may put in its place; all in lower case."""
    alternatives: dict[str, list[str]] = {}
    for word, row in substitutable_pairs(table).items():
        own = fold_word(word)
        names = [name for name in map(fold_word, row) if name is not None and name != own]
        if own is not None and names:
            alternatives[own] = list(dict.fromkeys([*alternatives.get(own, ()), *names]))
    return alternatives


def model_substitutions(tokens: Tokens, table: Table, set_size: int) -> Substitutions:
    """The pairs of the table of single words, as the model reads them."""
    alternatives = _table_alternatives(table)
    if not alternatives:
        raise UserError(
            "substitutions: no pair of the table can be used; function words, numbers, single letters and entries of "
            "several words are left out"
        )
    words = list(dict.fromkeys(name for word, row in alternatives.items() for name in (word, *row)))
    encodings = dict(zip(words, _encodings(tokens, words), strict=True))
    unknown = getattr(tokens, "unknown_id", None)
    known = {word: unknown not in encoding for word, encoding in encodings.items()}
    nodes: dict[str, Hashable] = {word: encodings[word] if known[word] else word for word in words}
    return Substitutions(alternatives, nodes, known, set_size)


def _encodings(tokens: Tokens, words: Sequence[str]) -> list[tuple[Any, ...]]:
    """The encoding of each word: ids, or the word itself in a black box."""
    if isinstance(tokens, TextWords):
        return [(word,) for word in words]
    # A word within a text begins with a space, which is a part of the token in some vocabularies.
    ragged = tokens.encode(words if tokens.kind == "words" else [f" {word}" for word in words])
    ids, ends = ragged.ids[ragged.words].tolist(), np.cumsum(ragged.counts(ragged.words)).tolist()
    return [tuple(ids[start:end]) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def substituted_positions(texts: Sequence[str], substitutions: Substitutions) -> Iterator[TextPositions]:
    """The words of each text that rewrites replace."""
    splitter, words = build_word_tokenizer([], max_length=LONGEST), frozenset(substitutions.nodes)
    for text in texts:
        yield text_positions(text, splitter.place([text]).spans[0], words)


def plans(
    tokens: Tokens,
    texts: Sequence[str],
    substitutions: Substitutions,
    config: SubstitutionConfig,
    search: WorstRewriteSearch | None = None,
) -> Iterator[Plan]:
    """The rewrites to evaluate for each text; `search`: for the worst rewrites, if the model allows it."""
    encodings: dict[str, tuple[Any, ...]] = {}
    for row, (text, positions) in enumerate(zip(texts, substituted_positions(texts, substitutions), strict=True)):
        names = [fold_word(form) or form for form in positions.words]
        forms = [
            {form: name, **cased_alternatives(form, substitutions.alternatives.get(name, ()))}
            for form, name in zip(positions.words, names, strict=True)
        ]
        new = [form for form in dict.fromkeys(form for row in forms for form in row) if form not in encodings]
        encodings.update(zip(new, _encodings(tokens, new) if new else [], strict=True))
        joined = [beside and tokens.kind == "pieces" for beside in positions.beside_unspaced]
        readings = [
            _joined_readings(tokens, alternatives) if join else {form: encodings[form] for form in alternatives}
            for join, alternatives in zip(joined, forms, strict=True)
        ]
        options = [_distinct(reading) for reading in readings]
        sizes = [len(distinct) for distinct in options]
        rewrites = count_rewrites(sizes, config.max_substitutions)
        alike = [
            [name for other, name in alternatives.items() if reading[other] == reading[form]]
            for form, alternatives, reading in zip(positions.words, forms, readings, strict=True)
        ]
        counts = {"text": text, "rewrites": min(rewrites, MOST_REWRITES), **_counts(forms, options, alike)}
        if rewrites <= config.samples:
            choices = enumerate_choices(sizes, config.max_substitutions)
            yield Plan("exact", positions.rewrites(options, choices), None, counts)
            continue
        worst = None
        if search is not None:
            worst = search(row, positions, [[encodings[form][0] for form in distinct] for distinct in options])
        if worst is None:
            yield _smoothing_plan(positions, forms, alike, substitutions, config, counts)
        else:
            yield Plan("exact", [text, *positions.rewrites(options, worst.choices)], None, counts, worst)


def _counts(
    forms: Sequence[Mapping[str, str]], options: Sequence[Sequence[str]], alike: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Numbers of positions and alternatives, and the words that are not covered."""
    same = [len(names) - 1 for names in alike]
    offered = [(len(row) - 1, covered) for row, covered in zip(forms, same, strict=True) if len(row) > 1]
    return {
        "positions": len(offered),
        "covered_positions": sum(alternatives == covered for alternatives, covered in offered),
        "alternatives": sum(alternatives for alternatives, _ in offered),
        "covered_alternatives": sum(same),
        "uncovered": tuple(distinct[0] for distinct in options if len(distinct) > 1),
    }


def _smoothing_plan(
    positions: TextPositions,
    forms: Sequence[Mapping[str, str]],
    alike: Sequence[Sequence[str]],
    substitutions: Substitutions,
    config: SubstitutionConfig,
    counts: dict[str, Any],
) -> Plan:
    """Random samples, or none if they cannot certify anything.

    `forms`: for each position the word and its alternatives, as written -> in lower case; `alike`: in lower case, those
    that the model reads the same as the word.
    """
    text = counts["text"]
    # Alternatives that the model reads alike are free, but their perturbation sets may differ: those of unknown words.
    distances, free = (
        np.array([max(substitutions.distance(names[0], name) for name in names) for names in rows])
        for rows in ([list(row.values()) for row in forms], alike)
    )
    total_variation = product_total_variation(distances, config.max_substitutions, free)
    if total_variation >= 0.5:
        return Plan("none", [text], total_variation, counts)
    sets = [
        [match_case(form, name) for name in substitutions.perturbation_set(row[form])]
        for form, row in zip(positions.words, forms, strict=True)
    ]
    samples = positions.rewrites(sets, _sample_choices(text, [len(row) for row in sets], config))
    return Plan("sampling", [text, *samples], total_variation, counts)


def _joined_readings(tokens: Tokens, forms: Mapping[str, str]) -> dict[str, Hashable]:
    """The encodings of forms beside a letter of a script without spaces, over which word pieces may continue.

    The encoding of the form alone does not tell this.  Only members of a synonym group are the same: the text is
    rewritten before it is split.
    """
    groups: SynonymGroups | None = getattr(tokens, "synonym_groups", None)
    return {form: name if groups is None else groups.representative(name) for form, name in forms.items()}


def _distinct(readings: Mapping[str, Hashable]) -> list[str]:
    """The first form of each reading, in order."""
    first: dict[Hashable, str] = {}
    for form, reading in readings.items():
        first.setdefault(reading, form)
    return list(first.values())


def _sample_choices(text: str, sizes: Sequence[int], config: SubstitutionConfig) -> Choices:
    """Random choices that depend on the seed and the text alone.  (samples,P)"""
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
    key = RandomKey(config.seed).child(int.from_bytes(digest) >> 1)
    uniform = key.uniform(torch.arange(config.samples), len(sizes), dtype=torch.float64).numpy()
    choices: Choices = (uniform * np.array(sizes)).astype(np.int64)
    return choices
