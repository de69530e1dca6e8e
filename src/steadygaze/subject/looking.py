"""How much a transformer looks at each token, from the attention of all its layers and heads.

    Aₗ  (B,T,T)  attention of layer l, the mean over its heads; each row sums to one
    r   (B,T)    which token the classifier reads, as shares: all on [CLS], all on the last, or even

    last      r · A_L                                       what the last layer gathers into what is read
    rollout   r · Â_L · … · Â_1,   Â = ½ A + ½ I            what reaches it from the words through all layers

Rollout: Abnar & Zuidema, ACL 2020 (arXiv:2005.00928), §3; ½ I stands for the residual connection.
Departs from the paper: nothing known.  Pinned by tests/subject/test_looking.py.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from steadygaze.types import Batch


def last(attentions: Sequence[Tensor], read: Tensor) -> Tensor:
    """L times (B,heads,T,T), (B,T) -> (B,T)"""
    return _step(read, attentions[-1])


def rollout(attentions: Sequence[Tensor], read: Tensor) -> Tensor:
    """L times (B,heads,T,T), (B,T) -> (B,T); a row at a time, so that no two (T,T) are multiplied"""
    for attention in reversed(attentions):
        read = (_step(read, attention) + read) / 2
    return read


LOOKS: dict[str, Callable[[Sequence[Tensor], Tensor], Tensor]] = {"last": last, "rollout": rollout}


def elsewhere(looked: Tensor, batch: Batch) -> Tensor:
    """Of the look at a text, the share on tokens that are no words of it: [CLS], [SEP].  (B,T) -> (B,)"""
    total = looked.masked_fill(~batch.present, 0.0).sum(-1)
    words = looked.masked_fill(~batch.mask, 0.0).sum(-1)
    return torch.where(total > 0, 1 - words / total.clamp_min(torch.finfo(looked.dtype).tiny), 0.0)


def _step(read: Tensor, attention: Tensor) -> Tensor:
    """(B,T), (B,heads,T,T) -> (B,T)"""
    return (read.unsqueeze(1) @ attention.to(read.dtype).mean(1)).squeeze(1)
