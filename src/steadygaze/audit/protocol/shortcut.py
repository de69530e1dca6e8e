"""Is it more than position or a shortcut?  Weight that says where, or lies on nothing, is no reason.

    position-leak             how far the places of the weight give the predicted class away, no word being seen
    position-leak/shuffled    the same once the words of each text are shuffled: weights that follow words lose what the
                              layout of the texts told, weights that follow places keep it
    default-mass              which part of the weight lies on tokens with nothing to read
    default-mass/above-share  the same minus the share of such tokens among the words
    first-sentence-share      which part lies in the first sentence
    first-sentence-pick       whether the heaviest word does
    collapsed                 whether the weights say the same whatever the text

NaN where a question makes no sense of a text: one without a word, or whose sentences are not known.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.audit.case import Case, Rows, shares
from steadygaze.audit.finding import Finding
from steadygaze.audit.measure import position
from steadygaze.audit.measure import shortcut as measure
from steadygaze.audit.probe.words import shuffled
from steadygaze.batch import collate
from steadygaze.infer import inference
from steadygaze.maths.chance import Chance
from steadygaze.maths.collapse import judge
from steadygaze.perturb.texts import text_key
from steadygaze.types import Batch

ONE_CLASS = f"fewer than two classes are predicted of {position.FEWEST} texts or more: there is nothing to give away"
NO_BLANKS = "nobody said which tokens have nothing to read"
NO_SENTENCES = "nobody marked the sentences"
ONE_WORD = "no text has two words to choose between"


@dataclass(frozen=True)
class Said:
    """What one explainer said of the texts it was asked about, as shares; all texts at once, on the CPU."""

    name: str
    share: Tensor  # (N,T)
    mask: Tensor  # (N,T), no word of a text that was not asked about
    ids: Tensor  # (N,T)
    key: Tensor  # (N,) belongs to the text

    def each(self, values: Tensor, known: Tensor | None = None) -> Tensor:
        """NaN where there is no word, or not `known` of the text.  (N,) -> (N,)"""
        able = self.mask.any(-1) if known is None else self.mask.any(-1) & known
        return values.masked_fill(~able, torch.nan)


def shortcut(case: Case) -> Iterator[Finding]:
    texts = collate(case.data, case.everything)
    key = _key(texts)
    for name in case.explainers:
        weights = case.saliency(name)
        mask = case.mask & ~weights.isnan().any(-1, keepdim=True)
        said = Said(name, shares(weights, mask), mask, texts.ids, key)
        yield _leak("position-leak", said, case.probs)
        yield _shuffled(case, said)
        yield from _default(case, said)
        yield from _first(case, said)
        yield _collapsed(said)


def _key(texts: Batch) -> Tensor:
    """(N,) of a pair, of the two together"""
    key = text_key(texts)
    if texts.question_ids is None or texts.question_present is None:
        return key
    asked = replace(texts, ids=texts.question_ids, present=texts.question_present, mask=texts.question_present)
    return key + Chance(2).scramble(text_key(asked))


def _leak(name: str, said: Said, probs: Tensor) -> Finding:
    values = position.leaks(said.share, probs.argmax(-1), said.mask, said.key)
    if values.isnan().all():
        return Finding(name, explainer=said.name, absent=ONE_CLASS)
    return Finding(name, values, said.name, {"folds": position.FOLDS})


def _shuffled(case: Case, said: Said) -> Finding:
    explainer = case.explainers[said.name]

    def work(_: Rows, batch: Batch) -> dict[str, Tensor]:
        found = explainer.explain(case.model, shuffled(batch, Chance(case.plan.seed).child(11)))
        wide = pad(found.weights.double(), (0, case.width - batch.ids.shape[1]))
        return {"weights": wide, "probs": found.logits.double().softmax(-1)}

    found = case.gather(f"{said.name} of shuffled texts", work, case.rows(said.name))
    mask, probs = said.mask, found["probs"].nan_to_num(0.0)
    return _leak("position-leak/shuffled", replace(said, share=shares(found["weights"], mask)), probs)


def _default(case: Case, said: Said) -> Iterator[Finding]:
    names = ("default-mass", "default-mass/above-share")
    if case.blank is None:
        yield from (Finding(name, explainer=said.name, absent=NO_BLANKS) for name in names)
        return
    mass = said.each(measure.default_mass(said.share, case.blank, said.mask))
    blank, words = (case.blank & said.mask).sum(-1), said.mask.sum(-1)
    if said.name == "attention" and (looked := _elsewhere(case)) is not None:
        specials = looked["specials"]
        mass = looked["elsewhere"] + (1 - looked["elsewhere"]) * mass
        blank, words = blank + specials, words + specials
    yield Finding(names[0], mass, said.name)
    yield Finding(names[1], mass - blank / words.clamp_min(1), said.name)


def _elsewhere(case: Case) -> dict[str, Tensor] | None:
    """Of a model that may look at its special tokens: how much it does, and how many there are.  (N,), (N,)"""

    def work(_: Rows, batch: Batch) -> dict[str, Tensor]:
        with inference(case.model):
            found = getattr(case.model(batch), "elsewhere", None)
        specials = (batch.present & ~batch.mask).sum(-1)
        return {} if found is None else {"elsewhere": found, "specials": specials}

    return case.gather("special tokens", work) or None


def _first(case: Case, said: Said) -> Iterator[Finding]:
    names = ("first-sentence-share", "first-sentence-pick")
    if case.first is None:
        yield from (Finding(name, explainer=said.name, absent=NO_SENTENCES) for name in names)
        return
    known = (case.first & said.mask).any(-1)
    for name, of in zip(names, (measure.first_sentence_share, measure.first_sentence_pick), strict=True):
        yield Finding(name, said.each(of(said.share, case.first, said.mask), known), said.name)


def _collapsed(said: Said) -> Finding:
    telling = said.mask.sum(-1) > 1
    if not telling.any():
        return Finding("collapsed", explainer=said.name, absent=ONE_WORD)
    found = judge(said.share[telling], said.mask[telling], ids=said.ids[telling])
    how = {"n": int(telling.sum())}
    return Finding("collapsed", value=float(found.collapsed), explainer=said.name, settings=how, note=found.reason)
