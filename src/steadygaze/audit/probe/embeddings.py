"""Word vectors moved a little, at random or to the worst.

noise     x + r,  r uniform in ‖r‖∞ ≤ ρ
label     x + r,  r one sign step of length ρ that lowers the probability of the predicted class        (FGM)
attention x + r,  r ten projected sign steps inside ‖r‖∞ ≤ ρ that raise JSD(w(x), w(x + r))             (PGD)

What a model selects moves by leaps, and has no slope: there w is the chance of each word to be selected, as shares.

ρ = `radius` × σ, the standard deviation of all entries of the model's word vectors: a number; or ρ itself, a tensor
that `reach` gave, for whoever moves many batches.  Only words move: never padding or special tokens; of a pair, the
text alone.
"""

from torch import Tensor
from torch.nn.functional import nll_loss

from steadygaze.audit.probe.look import Moved, look
from steadygaze.infer import inference, slopes
from steadygaze.maths.chance import Chance
from steadygaze.maths.divergence import jensen_shannon
from steadygaze.maths.masked import shares
from steadygaze.perturb.ascent import ascend
from steadygaze.perturb.embeddings import sigma
from steadygaze.perturb.texts import text_key
from steadygaze.reader import Reader
from steadygaze.types import Batch


def reach(model: Reader, radius: float | Tensor) -> Tensor:
    """ρ.  -> ()"""
    return radius if isinstance(radius, Tensor) else radius * sigma(model.vectors)


def noise(model: Reader, batch: Batch, radius: float | Tensor, chance: Chance) -> Moved:
    embedded = _clean(model, batch)
    return _moved(batch, embedded + _inside(batch, embedded, reach(model, radius), chance))


def worst_for_label(model: Reader, batch: Batch, radius: float | Tensor) -> Moved:
    embedded, size = _clean(model, batch), reach(model, radius)
    predicted = look(model, batch).probs.argmax(-1)

    def surprise(vectors: Tensor) -> Tensor:  # −ln p(predicted)
        logits: Tensor = model(batch, vectors).logits
        # Doubles: of a sure prediction, singles keep the slope of every class but its own.
        return nll_loss(logits.double().log_softmax(-1), predicted, reduction="none")

    still = embedded.new_zeros(embedded.shape)
    with slopes(model):
        r = ascend(surprise, still, centre=embedded, radius=size, norm="linf", steps=1, step_size=size, keep=batch.mask)
    return _moved(batch, embedded + r)


def worst_for_attention(model: Reader, batch: Batch, radius: float | Tensor, chance: Chance, steps: int = 10) -> Moved:
    embedded, size = _clean(model, batch), reach(model, radius)

    def shown(vectors: Tensor) -> Tensor:
        said = model(batch, vectors)
        weights: Tensor = said.weights
        return (shares(said.probability, batch.mask) if "selection" in model.abilities else weights).double()

    with inference(model):
        clean = shown(embedded)

    def moved(vectors: Tensor) -> Tensor:
        return jensen_shannon(clean, shown(vectors), batch.mask)

    start = _inside(batch, embedded, size, chance)
    with slopes(model):
        r = ascend(moved, start, centre=embedded, radius=size, norm="linf", steps=steps, keep=batch.mask, best=True)
    return _moved(batch, embedded + r)


def _moved(batch: Batch, embedded: Tensor) -> Moved:
    return Moved(batch, embedded, batch.mask.sum(-1))


def _clean(model: Reader, batch: Batch) -> Tensor:
    """(B,T,E), without dropout"""
    with inference(model):
        return model.embed(batch)


def _inside(batch: Batch, embedded: Tensor, size: Tensor, chance: Chance) -> Tensor:
    """A random point of the ball for every text, the same whatever batch it is in.  (B,T,E)"""
    drawn = 2 * chance.uniform(text_key(batch), *embedded.shape[1:], dtype=embedded.dtype) - 1
    return (size * drawn).masked_fill(~batch.mask.unsqueeze(-1), 0.0)
