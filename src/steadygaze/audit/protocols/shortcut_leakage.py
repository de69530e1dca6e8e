"""Is it more than position or a shortcut?  Weight that says where, or lies on nothing, is no reason.

    position-leak             how far the places of the weight give the predicted class away, no word being seen
    position-leak/shuffled    the same once the words of each text are shuffled: weights that follow words lose what the
                              layout of the texts told, weights that follow places keep it
    default-mass              which part of the weight lies on tokens with nothing to read
    default-mass/above-share  the same minus the share of such tokens among the words
    first-sentence-share      which part lies in the first sentence
    first-sentence-share/above-rationale   the same minus what is due to it: the part of the words that people marked
                              which stands there, or of all words where that is more
    first-sentence-pick       whether the heaviest word does
    collapsed                 whether the weights say the same whatever the text

NaN where a question makes no sense of a text: one without a word, or whose sentences are not known.  Those of a model
that selects are its own (selection.py).
"""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from steadygaze.audit.audit_case import AuditCase, Rows, has_weight
from steadygaze.audit.finding import Finding, missing_findings, selecting_explainers, texts_without_selection
from steadygaze.audit.measures import shortcut_measures
from steadygaze.audit.measures import shortcut_measures as measure
from steadygaze.audit.probes.text_perturbations import shuffle_words
from steadygaze.audit.protocols.plausibility import NOBODY
from steadygaze.audit.protocols.selection import first_sentence, knows_sentences, sentences
from steadygaze.core.maths.collapse import detect_ragged_collapse, detect_sentence_collapse
from steadygaze.core.maths.masked import normalize
from steadygaze.core.maths.segments import RaggedWeights
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch
from steadygaze.techniques.perturbations.word_removal import text_key

DEFAULT = ("default-mass", "default-mass/above-share")
FIRST = {
    "first-sentence-share": measure.first_sentence_share,
    "first-sentence-pick": measure.first_sentence_pick,
}
ABOVE = "first-sentence-share/above-rationale"
ONE_CLASS = (
    f"fewer than two classes are predicted of {shortcut_measures.FEWEST} texts or more: there is nothing to give away"
)
NO_BLANKS = "nobody said which tokens have nothing to read"
NO_SENTENCES = "nobody marked the sentences"
ONE_WORD = "no text has two words to choose between"


def shortcut_leakage(case: AuditCase) -> Iterator[Finding]:
    key = _keys(case)
    for name in case.explainers:
        found = case.gather(f"places of {name}", lambda r, b, n=name: _measured(case, n, r, b), case.rows(name))  # type: ignore[misc]
        seen = found["places"].masked_fill(texts_without_selection(case, name).unsqueeze(-1), torch.nan)
        yield _leak("position-leak", name, seen, case.probs, key)
        yield _shuffled(case, name, key)
        yield from _default(case, name, found)
        yield from (Finding(one, found[one], name) for one in (*FIRST, ABOVE) if one in found)
        yield _collapsed(case, name)
    yield from missing_findings(DEFAULT if case.blank is None else (), NO_BLANKS)
    if not knows_sentences(case):
        yield from missing_findings((*FIRST, ABOVE), NO_SENTENCES)
    elif case.rationales is None:
        yield Finding(ABOVE, absent=NOBODY)


def _keys(case: AuditCase) -> Tensor:
    """(N,) a number that belongs to each text; of a pair, to the two together"""
    found = torch.empty(len(case), dtype=torch.int64)
    for rows, batch in case.batches():
        key = text_key(batch)
        if batch.question_ids is not None and batch.question_present is not None:
            there = batch.question_present
            key = key + RandomKey(2).scramble(
                text_key(replace(batch, ids=batch.question_ids, present=there, mask=there))
            )
        found[torch.from_numpy(rows)] = key.cpu()
    return found


def _measured(case: AuditCase, name: str, rows: Rows, batch: Batch) -> dict[str, Tensor]:
    share, mask = normalize(case.gather_rows(case.saliency(name), rows, batch), batch.mask), batch.mask
    found: dict[str, Tensor] = {}
    if case.blank is not None:
        blank = case.gather_rows(case.blank, rows, batch)
        found |= {"mass": measure.default_mass(share, blank, mask), "blank": (blank & mask).sum(-1).double()}
    first = first_sentence(case, rows, batch)
    if first is not None:
        unknown = ~(first & mask).any(-1)
        found |= {name: of(share, first, mask).masked_fill(unknown, torch.nan) for name, of in FIRST.items()}
    if first is not None and case.rationales is not None:
        marked = case.gather_rows(case.rationales, rows, batch)
        found[ABOVE] = measure.first_sentence_above_rationale(share, marked, first, mask)
    found = {key: value.masked_fill(~mask.any(-1), torch.nan) for key, value in found.items()}
    return {"places": shortcut_measures.position_features(share, mask), **found}


def _leak(name: str, explainer: str, seen: Tensor, probs: Tensor, key: Tensor) -> Finding:
    values = shortcut_measures.position_leaks(seen, probs.argmax(-1), key)
    if values.isnan().all():
        return Finding(name, explainer=explainer, absent=ONE_CLASS)
    return Finding(name, values, explainer, {"folds": shortcut_measures.FOLDS})


def _shuffled(case: AuditCase, name: str, key: Tensor) -> Finding:
    def work(_: Rows, batch: Batch) -> dict[str, Tensor]:
        found = case.explainers[name].explain(case.model, shuffle_words(batch, RandomKey(case.plan.seed).child(11)))
        share = normalize(found.weights.double(), batch.mask)
        places, none = (
            shortcut_measures.position_features(share, batch.mask),
            batch.mask.any(-1) & ~has_weight(found.weights, batch.mask),
        )
        return {"places": places, "probs": found.logits.double().softmax(-1), "none": none}

    found = case.gather(f"{name} of shuffled texts", work, case.rows(name))
    before = texts_without_selection(case, name)
    later = (found["none"] == 1) & ~before if name in selecting_explainers(case) else torch.zeros_like(before)
    seen = found["places"].masked_fill((before | later).unsqueeze(-1), torch.nan)
    leak = _leak("position-leak/shuffled", name, seen, found["probs"].nan_to_num(0.0), key)
    note = f"of {int(later.sum()):,} texts nothing is selected once they are shuffled" if later.any() else ""
    return replace(leak, note=note)


def _default(case: AuditCase, name: str, found: dict[str, Tensor]) -> Iterator[Finding]:
    if case.blank is None:
        return
    mass, blank, words = found["mass"], found["blank"], case.token_counts
    if name == "attention" and case.special_token_share is not None:
        specials = torch.from_numpy(case.data.text.lengths) - words
        mass = case.special_token_share + (1 - case.special_token_share) * mass
        blank, words = blank + specials, words + specials
    yield Finding(DEFAULT[0], mass, name)
    yield Finding(DEFAULT[1], mass - blank / words.clamp_min(1), name)


def _collapsed(case: AuditCase, name: str) -> Finding:
    text = case.data.text
    asked = torch.zeros(len(case), dtype=torch.bool)
    asked[torch.from_numpy(case.rows(name))] = True
    asked &= (case.words > 1) & ~texts_without_selection(case, name)
    if not asked.any():
        return Finding("collapsed", explainer=name, absent=ONE_WORD)
    read = asked.repeat_interleave(torch.from_numpy(text.lengths)) & torch.from_numpy(text.words)
    sizes, ids = (
        RaggedWeights(case.saliency(name)[read].abs(), case.token_counts[asked]),
        torch.from_numpy(text.ids)[read],
    )
    laid = replace(sizes, values=sizes.shares(sizes.values))
    numbers = sentences(case) if name in selecting_explainers(case) else None
    found = detect_ragged_collapse(laid, ids) if numbers is None else detect_sentence_collapse(laid, numbers[read], ids)
    how = {"n": int(asked.sum())}
    return Finding("collapsed", value=float(found.collapsed), explainer=name, settings=how, note=found.reason)
