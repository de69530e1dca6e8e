"""Does attention talk in code: does it look at other places for each label, whatever stands there?

    class gap = mean over pairs of classes c, d of   ½ Σ_t |w̄_c,t − w̄_d,t|        w̄_c: mean attention of class c's texts

Bai et al. 2021 show class-mean attentions to tokens that are the same in every text; how far these are apart is our
number for it.  The places must mean the same in every text.
"""

from itertools import combinations

import torch
from torch import Tensor


def class_gap(weights: Tensor, label: Tensor, mask: Tensor) -> float:
    """In [0, 1]; 0 of one class.  A text without a word does not count.  (N,T), (N,), (N,T) -> one number"""
    worded = mask.any(-1)
    size = weights.masked_fill(~mask, 0.0).double().abs()
    means = [size[worded & (label == one)].mean(0) for one in label[worded].unique()]  # type: ignore[no-untyped-call]
    gaps = [(one - other).abs().sum() / 2 for one, other in combinations(means, 2)]
    return float(torch.stack(gaps).mean()) if gaps else 0.0
