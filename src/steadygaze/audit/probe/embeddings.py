"""Word vectors moved a little, at random or to the worst: what does the model show then?

noise     x + r,  r uniform in ‖r‖∞ ≤ ρ
label     x + r,  r one sign step of length ρ that lowers the probability of the predicted class        (FGM)
attention x + r,  r ten projected sign steps inside ‖r‖∞ ≤ ρ that raise JSD(w(x), w(x + r))             (PGD)

ρ = `radius` × σ, the standard deviation of all entries of the model's word vectors.  Only words move: never
padding or special tokens; of a pair, the text alone.
"""

from torch import Tensor
from torch.nn.functional import nll_loss

from steadygaze.audit.probe.look import Seen, look, slopes, text_key
from steadygaze.infer import inference
from steadygaze.maths.chance import Chance
from steadygaze.maths.divergence import jensen_shannon
from steadygaze.model import Classifier
from steadygaze.perturb.ascent import ascend
from steadygaze.perturb.embeddings import sigma
from steadygaze.types import Batch


def noise(model: Classifier, batch: Batch, radius: float, chance: Chance) -> Seen:
    embedded = _clean(model, batch)
    return look(model, batch, embedded + _inside(model, batch, embedded, radius, chance))


def worst_for_label(model: Classifier, batch: Batch, radius: float) -> Seen:
    embedded, size = _clean(model, batch), radius * sigma(model.encoder.vectors)
    predicted = look(model, batch).probs.argmax(-1)

    def surprise(vectors: Tensor) -> Tensor:  # −ln p(predicted)
        encoded = model.encode(batch, vectors)
        logits = model.decode(encoded, model.attend(model.score(encoded), batch.mask))
        # Doubles: of a sure prediction, singles keep the slope of every class but its own.
        return nll_loss(logits.double().log_softmax(-1), predicted, reduction="none")

    still = embedded.new_zeros(embedded.shape)
    with slopes(model):
        r = ascend(surprise, still, centre=embedded, radius=size, norm="linf", steps=1, step_size=size, keep=batch.mask)
    return look(model, batch, embedded + r)


def worst_for_attention(model: Classifier, batch: Batch, radius: float, chance: Chance, steps: int = 10) -> Seen:
    embedded, size = _clean(model, batch), radius * sigma(model.encoder.vectors)
    clean = look(model, batch).weights

    def moved(vectors: Tensor) -> Tensor:
        weights = model.attend(model.score(model.encode(batch, vectors)), batch.mask)
        return jensen_shannon(clean, weights.double(), batch.mask)

    start = _inside(model, batch, embedded, radius, chance)
    with slopes(model):
        r = ascend(moved, start, centre=embedded, radius=size, norm="linf", steps=steps, keep=batch.mask, best=True)
    return look(model, batch, embedded + r)


def _clean(model: Classifier, batch: Batch) -> Tensor:
    """(B,T,E), without dropout"""
    with inference(model):
        return model.embed(batch)


def _inside(model: Classifier, batch: Batch, embedded: Tensor, radius: float, chance: Chance) -> Tensor:
    """A random point of the ball for every text, the same whatever batch it is in.  (B,T,E)"""
    drawn = 2 * chance.uniform(text_key(batch), *embedded.shape[1:], dtype=embedded.dtype) - 1
    return (radius * sigma(model.encoder.vectors) * drawn).masked_fill(~batch.mask.unsqueeze(-1), 0.0)
