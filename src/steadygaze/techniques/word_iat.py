"""Word iAT: adversarial training toward other words.

Sato et al., IJCAI 2018 (arXiv:1805.02917), Eq. 9–13.

Equation
--------
    d̃_tk  =  unit(v_k − x_t)                   from word t toward the k-th of its nearest words
    G_tk   =  ∂ℓ/∂α_tk at α = 0  =  g_t · d̃_tk
    α      =  ε · G / ‖G‖₂                      the norm is over the words and neighbors of a text
    r_t    =  Σ_k α_tk d̃_tk
    L      =  ℓ(y, f(x))  +  λ · ℓ(y, f(x + r))

    x (B,T,E) embeddings   g = ∇ₓℓ   v_k the `neighbors` nearest words by cosine, updated before every epoch
    ε `epsilon`, times the mean norm of a word vector if `relative`   λ `weight`

It needs only the gradient of the embeddings: as many passes as Word AT.

    variant    normalization
    paper      α over the text, as above.  ε bounds ‖α‖, not ‖r‖: correlated directions make r longer than ε
    released   α_t = G_t / ‖G_t‖₂ for each word, then r = ε · d / ‖d‖₂ over the text, d_t = Σ_k α_tk d̃_tk.  Before the
               second step a word with a small gradient counts as much as a word with a large one

Cost
----
A second pass of the encoder and the nearest words: 2.1 vanilla steps on a GPU, 2.3 on a CPU.

When to use
-----------
To compare with Word AT, which is simpler and has the larger effect under noise.

Departs from the paper
----------------------
Ten neighbors, as in the authors' code; the paper has the whole vocabulary.  Special tokens (<unk>, <s>, </s>, [CLS],
[PAD] …) are never neighbors; in the authors' code they can be.  In a pair only the text is perturbed.

Tested by tests/techniques/test_word_iat.py.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from torch import Tensor

from steadygaze.core.maths.distributions import unit_vector
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch
from steadygaze.models.classifier import Classifier
from steadygaze.perturbations.gradient_ascent import toward_neighbors
from steadygaze.perturbations.word_substitution import Synonyms, nearest_words
from steadygaze.techniques.technique import LossContext
from steadygaze.techniques.word_at import WordAT


@settings
class WordIAT(WordAT):
    """Adversarial training toward other words (Sato et al. 2018)."""

    stacks: ClassVar[bool] = False

    neighbors: Annotated[int, Field(ge=1, le=100)] = 10
    """Number of nearest words of each word."""
    variant: Literal["paper", "released"] = "paper"
    """Normalization: over the text as printed, or per word and then per text as in the authors' code."""

    def direction(self, g: Tensor, embedded: Tensor, model: Classifier, batch: Batch, context: LossContext) -> Tensor:
        neighbors = model.vectors.detach()[context.epoch_tables["nearest"][batch.ids]]  # (B,T,K,E)
        released = self.variant == "released"
        d = toward_neighbors(g, embedded.detach(), neighbors, per_word=released)
        return unit_vector(d) if released else d

    @property
    def reads_vocabulary(self) -> bool:
        return True

    def on_epoch_start(self, model: Classifier, synonyms: Synonyms | None) -> Mapping[str, Tensor]:
        vectors = model.vectors.detach()
        real = vectors.any(-1)  # zeros: the id of padding
        if synonyms is not None and synonyms.special is not None:
            real = real & _padded(~synonyms.special, len(real))
        max_neighbors = max(int(real.sum()) - 1, 0)  # a word is not its own neighbor
        nearest = nearest_words(vectors, min(self.neighbors, max_neighbors), real)[0]
        return {**super().on_epoch_start(model, synonyms), "nearest": nearest}


def _padded(words: Tensor, size: int) -> Tensor:
    """Pad with False: a network can have more vectors than the vocabulary has words.  (V,) -> (size,)"""
    padded = words.new_zeros(size)
    padded[: len(words)] = words
    return padded
