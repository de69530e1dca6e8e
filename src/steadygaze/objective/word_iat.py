"""Word iAT: adversarial training towards other words.

Sato et al., IJCAI 2018 (arXiv:1805.02917), Eq. 9–13.

    d̃_tk  =  unit(v_k − x_t)                   from word t towards the k-th of its nearest words
    α_t    =  unit over k of  ∂ℓ/∂α_tk at α = 0  =  unit(g_t · d̃_tk)
    r      =  ε · unit over the text of  Σ_k α_tk d̃_tk
    L      =  ℓ(y, f(x))  +  λ · ℓ(y, f(x + r))

    x (B,T,E) embeddings   g = ∇ₓℓ   v_k the `neighbours` nearest words by cosine, looked up anew before every epoch
    ε `epsilon` × the mean length of a word vector (`relative`), or as it is   λ `weight`

∂ℓ/∂α_tk = g_t · d̃_tk, so that the gradient of the embeddings is all it takes: no pass more than Word AT.
Departs from the paper: ten neighbours, as its authors' code has it, where the text has the whole vocabulary.  Of a
pair, the text alone is perturbed.  Pinned by tests/objective/test_word_iat.py.
"""

from collections.abc import Mapping
from typing import Annotated

from torch import Tensor

from steadygaze.config import Field, settings
from steadygaze.maths.norms import unit
from steadygaze.model import Classifier
from steadygaze.objective.technique import Given, Technique
from steadygaze.objective.word_at import leaf_of, task_loss
from steadygaze.perturb.embeddings import length, toward_neighbours
from steadygaze.perturb.slope import slope
from steadygaze.perturb.words import Synonyms, nearest
from steadygaze.types import Batch, Terms


@settings
class WordIAT(Technique):
    """Adversarial training towards other words (Sato et al. 2018)."""

    epsilon: Annotated[float, Field(ge=0, le=100)] = 0.2
    """Length of the perturbation of a text; see `relative`."""
    relative: bool = True
    """Whether `epsilon` counts mean lengths of a word vector, or is a length itself."""
    neighbours: Annotated[int, Field(ge=1, le=100)] = 10
    """Nearest words that each word may be moved towards."""
    weight: Annotated[float, Field(ge=0)] = 1.0
    """How much the perturbed loss counts beside the clean one."""

    def loss(self, model: Classifier, batch: Batch, given: Given) -> Terms:
        embedded = leaf_of(model.embed(batch))
        clean = task_loss(model, batch, embedded)
        g = slope(clean, embedded, batch.mask)
        others = model.encoder.vectors.detach()[given.tables["nearest"][batch.ids]]  # (B,T,K,E)
        d = toward_neighbours(g, embedded.detach(), others)
        r = self.epsilon * given.tables["unit"] * unit(d.masked_fill(~batch.mask.unsqueeze(-1), 0.0))
        return {"task": clean, "adversarial": self.weight * task_loss(model, batch, embedded + r)}

    def refresh(self, model: Classifier, synonyms: Synonyms | None) -> Mapping[str, Tensor]:
        vectors = model.encoder.vectors.detach()
        size, real = length(vectors), vectors.any(-1)
        most = max(int(real.sum()) - 1, 0)  # a word's others; the id of padding is nobody's neighbour
        return {
            "unit": size if self.relative else size.new_ones(()),
            "nearest": nearest(vectors, min(self.neighbours, most), real)[0],
        }
