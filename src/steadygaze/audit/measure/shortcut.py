"""Whether the weight goes to a place, or to nothing, where it should go to words that say something.

    default mass           Σ_{t∈D} |w_t| / Σ_t |w_t|             D: tokens with nothing to read       Bai et al. 2021
    … above share          the same minus |D| / n: what even weights would give them
    first-sentence share   Σ_{t in sentence 1} |w_t| / Σ_t |w_t|
    … above evidence       the same minus what is due: the part of the marked words that stands there, or of all words
                           where that is more
    first-sentence pick    1 where the heaviest word stands in sentence 1; of equals, which part does     (X₁ %)

    weights  w (B,T)     blank  D (B,T) bool     first  sentence 1 (B,T) bool     evidence, mask  (B,T) bool

Due by all words, too: weights on words drawn at random keep to no place, and would seem to in texts of two or three
sentences.  Whether places give the label away is asked in `position`.

Departs from the paper: Bai et al. put four tokens that say nothing into every text; here they are those the text has.
Yu et al. 2021 count models that choose whole sentences; a soft explanation chooses the sentence of its heaviest word.
"""

import torch
from torch import Tensor

from steadygaze.audit.measure.mass import mass, part


def default_mass(weights: Tensor, blank: Tensor, mask: Tensor) -> Tensor:
    """Which part of the weight lies on tokens with nothing to read, in [0, 1].  (B,T) -> (B,)"""
    return mass(weights, blank, mask)


def default_mass_above_share(weights: Tensor, blank: Tensor, mask: Tensor) -> Tensor:
    """The same minus the share of such tokens among the words, in [−1, 1].  (B,T) -> (B,)"""
    return mass(weights, blank, mask) - part((blank & mask).sum(-1).double(), mask.sum(-1))


def first_sentence_share(weights: Tensor, first: Tensor, mask: Tensor) -> Tensor:
    """Which part of the weight lies in the first sentence, in [0, 1]; `weights` may be chosen tokens.  (B,T) -> (B,)"""
    return mass(weights, first, mask)


def first_sentence_above_evidence(weights: Tensor, evidence: Tensor, first: Tensor, mask: Tensor) -> Tensor:
    """In [−1, 1]; NaN where no word is marked, and where sentence 1 is not known, or is all there is.  (B,T) -> (B,)"""
    due = torch.maximum(mass(evidence.double(), first, mask), mass(mask.double(), first, mask))
    told = (evidence & mask).any(-1) & (first & mask).any(-1) & (~first & mask).any(-1)
    return (mass(weights, first, mask) - due).masked_fill(~told, torch.nan)


def first_sentence_pick(weights: Tensor, first: Tensor, mask: Tensor) -> Tensor:
    """Whether the heaviest word stands in the first sentence, in [0, 1].  (B,T) -> (B,)"""
    size = weights.to(torch.promote_types(weights.dtype, torch.float32)).abs().masked_fill(~mask, -1.0)
    heaviest = (size == size.amax(-1, keepdim=True)) & mask
    return part((heaviest & first).sum(-1).to(size.dtype), heaviest.sum(-1))
