"""Label leakage through a mask: the formulas are in `core/maths/label_leakage.py`, where training can use them.

Does attention talk in code: does it look at other places for each label, whatever stands there?

    class gap = mean over pairs of classes c, d of   ½ Σ_t |w̄_c,t − w̄_d,t|        w̄_c: mean attention of class c's
    texts

Bai et al. 2021 show class-mean attentions to tokens that are the same in every text; how far these are apart is our
number for it.  The places must mean the same in every text.

Can the label be told from where the weight lies, without seeing a word?

A model may write its answer into the places of its weights: the first word for one class, the second for another,
whatever these words are.  Then they explain nothing, although they decide (Bai et al. 2021: combinatorial shortcuts).

Every text becomes a profile of places, and a logistic regression guesses the predicted class c from it.

    leak = 1/C Σ_c  mean over the texts of class c of   q(c | u, s) − q(c | u)

    s    the profile of the saliency: its shares on the first 8 words, on the last 8, and in each tenth of the text
    u    that of even shares, which is all that the length of a text gives away
    q    what the regression, fitted to four fifths of the texts, says of a text in the other fifth

So: how much more often would someone be right who draws a guess from q, every class counting alike?  0: the places tell
nothing that the length does not.  1 − 1/C: they tell everything.  Guesses are drawn, not the likeliest taken: of places
that say nothing the likeliest is right or wrong by a hair, and the mean over 300 texts sure to ±0.07 only.
Someone who took the likeliest of two would be right in about ½ + √(leak/2) of the texts: 0.05 is 66 %, 0.10 is 72 %.

Only what a linear guess sees is found: no answer hidden in odd and even places.  An interval over the texts takes the
fitted regressions as given: another set of texts would differ by half as much again.  Departs from the paper: ours.

Whether the weight goes to a place, or to nothing, where it should go to words that say something.

    default mass           Σ_{t∈D} |w_t| / Σ_t |w_t|             D: tokens with nothing to read       Bai et al. 2021
    … above share          the same minus |D| / n: what even weights would give them
    first-sentence share   Σ_{t in sentence 1} |w_t| / Σ_t |w_t|
    … above rationales       the same minus what is due: the part of the marked words that stands there, or of all words
                           where that is more
    first-sentence pick    1 where the heaviest word stands in sentence 1; of equals, which part does     (X₁ %)

    weights  w (B,T)     blank  D (B,T) bool     first  sentence 1 (B,T) bool     rationales, mask  (B,T) bool

Due by all words, too: weights on words drawn at random keep to no place, and would seem to in texts of two or three
sentences.  Whether places give the label away is asked in `position`.

Departs from the paper: Bai et al. put four tokens that say nothing into every text; here they are those the text has.
Yu et al. 2021 count models that choose whole sentences; a soft explanation chooses the sentence of its heaviest word.
"""

from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.audit.measures.plausibility_measures import mass, mass_share
from steadygaze.core.maths.label_leakage import independent_reader_accuracy, leakage_gap

__all__ = ["independent_reader_accuracy", "leakage_gap"]


def class_gap(weights: Tensor, label: Tensor, mask: Tensor) -> float:
    """In [0, 1]; 0 of one class.  A text without a word does not count.  (N,T), (N,), (N,T) -> one number"""
    worded = mask.any(-1)
    size = weights.masked_fill(~mask, 0.0).double().abs()
    means = [size[worded & (label == one)].mean(0) for one in label[worded].unique()]  # type: ignore[no-untyped-call]
    gaps = [(one - other).abs().sum() / 2 for one, other in combinations(means, 2)]
    return float(torch.stack(gaps).mean()) if gaps else 0.0


PLACES = 8
"""Words counted from either end."""
PARTS = 10
TIMID = 0.03
"""How far the regression trusts what it sees (scikit-learn's C).  So that of 150 texts, places that say nothing leak
0.00 ± 0.012, and places that say everything 0.33 of the 0.50 there are; of 300, 0.00 ± 0.008 and 0.39."""
FOLDS = 5
"""Of how many parts one is guessed from the others."""
FEWEST = 20
"""Different texts that a class needs: of fewer, chance alone would tell too much."""


def position_leak(weights: Tensor, predicted: Tensor, mask: Tensor, key: Tensor) -> float:
    """The mean over a whole set, in [−1, 1]: give it all texts at once.  (N,T), (N,), (N,T), (N,) -> one number"""
    told = position_leaks(position_features(weights, mask), predicted, key)
    if told.isnan().all():
        raise ValueError(f"fewer than two classes have {FEWEST} different texts: there is nothing to tell apart")
    return float(told.nanmean())


def position_features(weights: Tensor, mask: Tensor) -> Tensor:
    """u and s of each text; NaN where there is no word.  The weights are shares.  (B,T), (B,T) -> (B,2F)"""
    words = mask.sum(-1, keepdim=True)
    both = torch.cat([profile(mask / words.clamp_min(1).double(), mask), profile(weights.double(), mask)], -1)
    return both.masked_fill(words == 0, torch.nan)


def position_leaks(seen: Tensor, predicted: Tensor, key: Tensor) -> Tensor:
    """q(c | u, s) − q(c | u) of each text, so weighted that the mean is the leak; NaN where it cannot be told.  -> (N,)

    seen    the places of all texts, (N,2F)
    key     a number that belongs to the text: in which fold it is does not depend on its place in the split

    A text counts once, however often it is there: the regression sees it once, and its copies share its weight.
    """
    able = label_predictable(predicted, ~seen.isnan().any(-1), key)
    found = torch.full(predicted.shape, torch.nan, dtype=torch.float64)
    if not able.any():
        return found
    both = torch.stack([predicted[able], key[able]], -1).cpu().numpy()  # in the order of classes, then of keys
    different, first, which, copies = np.unique(
        both, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    _, kind, size = np.unique(different[:, 0], return_inverse=True, return_counts=True)
    known = seen[able].cpu().numpy()[first]
    fold = (np.arange(len(kind)) - np.searchsorted(kind, kind)) % FOLDS
    gain = _guessed(known, kind, fold) - _guessed(known[:, : known.shape[1] // 2], kind, fold)
    found[able] = torch.from_numpy((gain * len(which) / (len(size) * size[kind] * copies))[which.reshape(-1)])
    return found


def label_predictable(predicted: Tensor, worded: Tensor, key: Tensor) -> Tensor:
    """Texts with a word, of a class that has FEWEST different ones; none unless two classes have.  -> (N,) bool"""
    distinct = torch.stack([predicted[worded].cpu(), key[worded].cpu()], -1).unique(dim=0)[:, 0]  # type: ignore[no-untyped-call]
    frequent = distinct.bincount(minlength=int(predicted.max()) + 1).to(predicted.device) >= FEWEST  # (C,)
    return worded & frequent[predicted] if frequent.sum() > 1 else torch.zeros_like(worded)


def profile(weights: Tensor, mask: Tensor) -> Tensor:
    """What lies on the first words, on the last, and in each tenth of the text.  (N,T), (N,T) -> (N,F)"""
    order = mask.to(torch.uint8).sort(dim=-1, descending=True, stable=True).indices  # words to the front
    weights = pad(weights.masked_fill(~mask, 0.0).gather(-1, order), (0, PLACES))
    words = mask.sum(-1, keepdim=True)
    last = words - 1 - torch.arange(PLACES, device=mask.device)
    back = weights.gather(-1, last.clamp_min(0)).masked_fill(last < 0, 0.0)
    tenths = torch.arange(PARTS + 1, dtype=torch.float64, device=mask.device)
    edges = words * tenths / PARTS  # a word that lies across an edge is shared
    up_to = pad(weights.cumsum(-1), (1, 0)).gather(-1, edges.long())
    below = up_to + edges.frac() * weights.gather(-1, edges.long())
    return torch.cat([weights[:, :PLACES], back, below.diff(dim=-1)], -1)


def _guessed(seen: NDArray[np.float64], kind: NDArray[np.int64], fold: NDArray[np.int64]) -> NDArray[np.float64]:
    """How likely each text's own class seems to a regression that has not seen the text.  (N,F), (N,) -> (N,)"""
    own = np.empty(len(kind))
    for one in range(FOLDS):
        out = fold == one
        regression = LogisticRegression(C=TIMID, class_weight="balanced", max_iter=5_000)
        guess = make_pipeline(StandardScaler(), regression)
        own[out] = guess.fit(seen[~out], kind[~out]).predict_proba(seen[out])[np.arange(out.sum()), kind[out]]
    return own


def default_mass(weights: Tensor, blank: Tensor, mask: Tensor) -> Tensor:
    """Which part of the weight lies on tokens with nothing to read, in [0, 1].  (B,T) -> (B,)"""
    return mass(weights, blank, mask)


def default_mass_above_share(weights: Tensor, blank: Tensor, mask: Tensor) -> Tensor:
    """The same minus the share of such tokens among the words, in [−1, 1].  (B,T) -> (B,)"""
    return mass(weights, blank, mask) - mass_share((blank & mask).sum(-1).double(), mask.sum(-1))


def first_sentence_share(weights: Tensor, first: Tensor, mask: Tensor) -> Tensor:
    """Which part of the weight lies in the first sentence, in [0, 1]; `weights` may be chosen tokens.  (B,T) -> (B,)"""
    return mass(weights, first, mask)


def first_sentence_above_rationale(weights: Tensor, rationales: Tensor, first: Tensor, mask: Tensor) -> Tensor:
    """In [−1, 1]; NaN where no word is marked, and where sentence 1 is not known, or is all there is.  (B,T) -> (B,)"""
    due = torch.maximum(mass(rationales.double(), first, mask), mass(mask.double(), first, mask))
    told = (rationales & mask).any(-1) & (first & mask).any(-1) & (~first & mask).any(-1)
    return (mass(weights, first, mask) - due).masked_fill(~told, torch.nan)


def first_sentence_pick(weights: Tensor, first: Tensor, mask: Tensor) -> Tensor:
    """Whether the heaviest word stands in the first sentence, in [0, 1].  (B,T) -> (B,)"""
    size = weights.to(torch.promote_types(weights.dtype, torch.float32)).abs().masked_fill(~mask, -1.0)
    heaviest = (size == size.amax(-1, keepdim=True)) & mask
    return mass_share((heaviest & first).sum(-1).to(size.dtype), heaviest.sum(-1))
