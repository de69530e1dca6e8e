"""Steps in the space of embeddings: how large is a small one, and where does the loss rise fastest?

    σ          standard deviation of the entries of the word vectors: the unit of an ℓ∞ radius
    length     mean ‖v‖₂ of a word vector: the unit of an ℓ2 radius
    neighbours d_t = Σ_k α_tk d̃_tk,  d̃_tk = unit(v_k − x_t),  α = unit of (g_t·d̃_tk)       Sato et al. 2018, Eq. 9–13
               unit over the whole text as printed; `per_word`: over the neighbors of each word

The unit makes a setting mean the same for GloVe, whose vectors have length 5, and for a transformer's, of length 1.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from steadygaze.maths.norms import unit


def sigma(vectors: Tensor) -> Tensor:
    """Standard deviation over all entries of all vectors that are not zero.  (V,E) -> ()"""
    return _real(vectors).std(correction=0)


def length(vectors: Tensor) -> Tensor:
    """Mean ‖v‖₂ over all vectors that are not zero.  (V,E) -> ()"""
    lengths: Tensor = torch.linalg.vector_norm(_real(vectors), dim=-1)
    return lengths.mean()


def toward_neighbours(g: Tensor, embedded: Tensor, neighbours: Tensor, *, per_word: bool) -> Tensor:
    """That part of g which leads to other words; g is 0 on padding.  (B,T,E), (B,T,E), (B,T,K,E) -> (B,T,E)"""
    directions = normalize(neighbours - embedded.unsqueeze(2), dim=-1)
    rise = (directions @ g.unsqueeze(-1)).squeeze(-1)  # (B,T,K): ∂ℓ/∂α at α = 0
    # not `normalize`, which leaves a faint gradient as it is
    alpha = unit(rise.flatten(0, 1)).view_as(rise) if per_word else unit(rise)
    return (alpha.unsqueeze(2) @ directions).squeeze(2)


def _real(vectors: Tensor) -> Tensor:
    vectors = vectors.detach()
    return vectors[vectors.any(-1)]
