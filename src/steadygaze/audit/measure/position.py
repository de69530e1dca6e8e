"""Can the label be told from where the weight lies, without seeing a word?

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
"""

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch.nn.functional import pad

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
    told = leaks(places(weights, mask), predicted, key)
    if told.isnan().all():
        raise ValueError(f"fewer than two classes have {FEWEST} different texts: there is nothing to tell apart")
    return float(told.nanmean())


def places(weights: Tensor, mask: Tensor) -> Tensor:
    """u and s of each text; NaN where there is no word.  The weights are shares.  (B,T), (B,T) -> (B,2F)"""
    words = mask.sum(-1, keepdim=True)
    both = torch.cat([profile(mask / words.clamp_min(1).double(), mask), profile(weights.double(), mask)], -1)
    return both.masked_fill(words == 0, torch.nan)


def leaks(seen: Tensor, predicted: Tensor, key: Tensor) -> Tensor:
    """q(c | u, s) − q(c | u) of each text, so weighted that the mean is the leak; NaN where it cannot be told.  -> (N,)

    seen    the places of all texts, (N,2F)
    key     a number that belongs to the text: in which fold it is does not depend on its place in the split

    A text counts once, however often it is there: the regression sees it once, and its copies share its weight.
    """
    able = tellable(predicted, ~seen.isnan().any(-1), key)
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


def tellable(predicted: Tensor, worded: Tensor, key: Tensor) -> Tensor:
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
