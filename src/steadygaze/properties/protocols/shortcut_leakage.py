"""Shortcut leakage: dependence of the explanation on positions, default tokens and the first sentence.

    position-leak             how well attention positions alone reveal the predicted label
    position-leak/shuffled    the same for shuffled words: it stays if the weights depend on positions, not on words
    position-leak/unaccounted the last one, where the shown words do not account for the label (label_readers.py)
    default-mass              share of the weight on tokens without content
    default-mass/above-share  the same minus the share of such tokens among the words
    first-sentence-share      share of the weight in the first sentence
    first-sentence-share/above-rationale   the same minus the larger of two shares of the first sentence: of the
                              human rationale and of all words
    first-sentence-pick       whether the top-weighted word is in the first sentence
    collapsed                 whether the weights do not depend on the text

NaN for a text without words or with unknown sentences.  A rationalizer defines its own sentences (selection.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from steadygaze.core.maths.collapse import detect_ragged_collapse, detect_sentence_collapse
from steadygaze.core.maths.distributions import normalize
from steadygaze.core.maths.ridge_classifier import FOLDS
from steadygaze.core.ragged import RaggedTensor
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch
from steadygaze.properties.audit_case import (
    AuditCase,
    Finding,
    Rows,
    missing_findings,
    other_explainers,
    selecting_explainers,
    texts_without_selection,
)
from steadygaze.properties.measures import shortcut_measures
from steadygaze.properties.measures import shortcut_measures as measure
from steadygaze.properties.measures.measure import measures_of
from steadygaze.properties.measures.stability_measures import EVEN, has_weight
from steadygaze.properties.probes.text_perturbations import MODEL_EXPLAINERS, shuffle_words
from steadygaze.properties.protocols.plausibility import NO_RATIONALES
from steadygaze.properties.protocols.selection import first_sentence, knows_sentences, sentences
from steadygaze.results.note import Note, NoteCode, note

DEFAULT = ("default-mass", "default-mass/above-share")
FIRST = measures_of("place", shortcut_measures.MEASURES)
ABOVE_RATIONALE = "first-sentence-share/above-rationale"
NO_BLANKS, NO_SENTENCES = Note(NoteCode.NO_BLANK_TOKENS), Note(NoteCode.NO_SENTENCES)
ONE_WORD = Note(NoteCode.NO_TEXT_OF_TWO_WORDS)
LISTED = 4
"""Classes that are listed with their number of texts."""


def shortcut_leakage(case: AuditCase) -> Iterator[Finding]:
    key = case.keys
    for name in case.explainers:
        scores = case.gather(f"positions of {name}", lambda r, b, n=name: _scores(case, n, r, b), case.rows(name))  # type: ignore[misc]
        features = scores["positions"].masked_fill(texts_without_selection(case, name).unsqueeze(-1), torch.nan)
        yield _leak(case, "position-leak", name, features, case.probs, key)
        shuffled = _shuffled_leak(case, name, key)
        yield from (shuffled, *_unaccounted(case, name, shuffled))
        yield from _default_mass(case, name, scores)
        yield from (
            Finding(measure, scores[measure], name) for measure in (*FIRST, ABOVE_RATIONALE) if measure in scores
        )
        yield _collapse(case, name)
    if not case.unaccounted:
        reason = NoteCode.NO_OTHER_TEXTS if other_explainers(case) else NoteCode.ONLY_RANDOM_EXPLAINER
        yield from missing_findings(("position-leak/unaccounted",), Note(reason))
    yield from missing_findings(DEFAULT if case.blank is None else (), NO_BLANKS)
    if not knows_sentences(case):
        yield from missing_findings((*FIRST, ABOVE_RATIONALE), NO_SENTENCES)
    elif case.rationales is None:
        yield Finding(ABOVE_RATIONALE, absent=NO_RATIONALES)


def _scores(case: AuditCase, name: str, rows: Rows, batch: Batch) -> dict[str, Tensor]:
    share, mask = normalize(case.gather_rows(case.saliency(name), rows, batch), batch.mask), batch.mask
    scores: dict[str, Tensor] = {}
    if case.blank is not None:
        blank = case.gather_rows(case.blank, rows, batch)
        scores |= {"mass": measure.default_mass(share, blank, mask), "blank": (blank & mask).sum(-1).double()}
    first = first_sentence(case, rows, batch)
    if first is not None:
        unknown = ~(first & mask).any(-1)
        values = {"weights": share, "first": first, "mask": mask}
        scores |= {name: of.score(values).masked_fill(unknown, torch.nan) for name, of in FIRST.items()}
    if first is not None and case.rationales is not None:
        marked = case.gather_rows(case.rationales, rows, batch)
        scores[ABOVE_RATIONALE] = measure.first_sentence_above_rationale(share, marked, first, mask)
    scores = {key: value.masked_fill(~mask.any(-1), torch.nan) for key, value in scores.items()}
    return {"positions": shortcut_measures.position_features(share, mask), **scores}


def _leak(case: AuditCase, name: str, explainer: str, features: Tensor, probs: Tensor, key: Tensor) -> Finding:
    predicted = probs.argmax(-1)
    values = shortcut_measures.position_leaks(features, predicted, key)
    if values.isnan().all():
        worded = ~features.isnan().any(-1)
        counts = shortcut_measures.distinct_texts(predicted, worded, key, probs.shape[-1]).tolist()
        return Finding(name, explainer=explainer, absent=_few_texts(case, counts))
    return Finding(name, values, explainer, {"folds": FOLDS})


def _few_texts(case: AuditCase, counts: Sequence[int]) -> Note:
    """The reason for a missing position leak, with the number of texts of the most frequent classes."""
    names = map(str, case.classes or range(len(counts)))
    pairs = sorted(zip(names, counts, strict=True), key=lambda pair: -pair[1])
    return note(
        NoteCode.FEW_TEXTS_OF_A_CLASS,
        least=shortcut_measures.FEWEST,
        classes=pairs[:LISTED],
        more=len(pairs) > LISTED,
    )


def _shuffled_leak(case: AuditCase, name: str, key: Tensor) -> Finding:
    def work(_: Rows, batch: Batch) -> dict[str, Tensor]:
        saliency = case.explainers[name].explain(
            case.model, shuffle_words(batch, RandomKey(case.config.seed).child(11))
        )
        share = normalize(saliency.weights.double(), batch.mask)
        positions, empty = (
            shortcut_measures.position_features(share, batch.mask),
            batch.mask.any(-1) & ~has_weight(saliency.weights, batch.mask),
        )
        return {"positions": positions, "probs": saliency.logits.double().softmax(-1), "empty": empty}

    outputs = case.gather(shuffled_task(name), work, case.rows(name))
    before = texts_without_selection(case, name)
    after = (outputs["empty"] == 1) & ~before if name in selecting_explainers(case) else torch.zeros_like(before)
    features = outputs["positions"].masked_fill((before | after).unsqueeze(-1), torch.nan)
    leak = _leak(case, "position-leak/shuffled", name, features, outputs["probs"].nan_to_num(0.0), key)
    return replace(leak, notes=(note(NoteCode.EMPTY_WHEN_SHUFFLED, texts=int(after.sum())),) if after.any() else ())


def _unaccounted(case: AuditCase, name: str, shuffled: Finding) -> Iterator[Finding]:
    """The same where the shown words do not account for the label; none for the random baseline."""
    if name not in case.unaccounted:
        return
    values = None if shuffled.values is None else shuffled.values * case.unaccounted[name]
    yield replace(shuffled, measure="position-leak/unaccounted", values=values)


def shuffled_task(name: str) -> str:
    return f"{name} of shuffled texts"


def _default_mass(case: AuditCase, name: str, scores: dict[str, Tensor]) -> Iterator[Finding]:
    if case.blank is None:
        return
    mass, blank, words = scores["mass"], scores["blank"], case.token_counts
    if name == "attention" and case.special_token_share is not None:
        specials = torch.from_numpy(case.data.text.lengths) - words
        mass = case.special_token_share + (1 - case.special_token_share) * mass
        blank, words = blank + specials, words + specials
    yield Finding(DEFAULT[0], mass, name)
    yield Finding(DEFAULT[1], mass - blank / words.clamp_min(1), name)


def _sizes(name: str, values: Tensor, counts: Tensor) -> Tensor:
    """The size of each weight: from 0 for the model's own weights, from the least of its text for all others.

    An added constant changes nothing for the words of a text.
    """
    if name in MODEL_EXPLAINERS:
        return values.abs()
    text = torch.arange(len(counts)).repeat_interleave(counts)
    least = values.new_full((len(counts),), torch.inf).scatter_reduce(0, text, values, "amin")
    distance = values - least[text]
    largest = distance.new_zeros(len(counts)).scatter_reduce(0, text, distance, "amax")
    size = values.new_zeros(len(counts)).scatter_reduce(0, text, values.abs(), "amax")
    return distance.masked_fill((largest <= EVEN * size)[text], 0.0)


def _collapse(case: AuditCase, name: str) -> Finding:
    text = case.data.text
    included = torch.zeros(len(case), dtype=torch.bool)
    included[torch.from_numpy(case.rows(name))] = True
    included &= (case.words > 1) & ~texts_without_selection(case, name)
    if not included.any():
        return Finding("collapsed", explainer=name, absent=ONE_WORD)
    tokens = included.repeat_interleave(torch.from_numpy(text.lengths)) & torch.from_numpy(text.words)
    values, counts = case.saliency(name)[tokens], case.token_counts[included]
    sizes, ids = RaggedTensor(_sizes(name, values, counts), counts), torch.from_numpy(text.ids)[tokens]
    shares = replace(sizes, values=sizes.normalize(sizes.values))
    numbers = sentences(case) if name in selecting_explainers(case) else None
    if numbers is None:
        collapse = detect_ragged_collapse(shares, ids)
    else:
        collapse = detect_sentence_collapse(shares, numbers[tokens], ids)
    settings = {"n": int(included.sum())}
    statistics = ("uniform", "constant", "distance_to_uniform", "unexplained", "unit")
    fields = {statistic: getattr(collapse, statistic) for statistic in statistics}
    notes = (note(NoteCode.COLLAPSED, **fields, message=collapse.reason),) if collapse.collapsed else ()
    return Finding("collapsed", value=float(collapse.collapsed), explainer=name, settings=settings, notes=notes)
