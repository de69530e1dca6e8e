"""What techniques with a perturbed loss share: the clean loss counts once, and the perturbation is a constant."""

from functools import partial

import pytest
import torch

from contract.tiny import assert_close
from steadygaze.techniques.attention_at import AttentionAT
from steadygaze.techniques.attention_iat import AttentionIAT
from steadygaze.techniques.attention_rp import AttentionRP
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.techniques.word_at import WordAT
from steadygaze.techniques.word_iat import WordIAT
from techniques.byhand import assert_gradient, loss, move_of, real_model, shift_of, task

VARIANTS = ("sentence", "word", "literal", "released")
KINDS = {
    **{kind.__name__: kind for kind in (AttentionAT, AttentionRP, WordAT, WordIAT)},
    **{f"AttentionIAT {variant}": partial(AttentionIAT, variant=variant) for variant in VARIANTS},
}


@pytest.mark.parametrize("encoder", ["average", "bilstm"])
@pytest.mark.parametrize("name", KINDS)
def test_the_clean_loss_counts_once_and_the_perturbation_is_a_constant(name, encoder):
    """The gradient is ∇ℓ(x) + λ ∇ℓ(x + r), r fixed; not 2∇ℓ(x) + λ ∇ℓ(x + r)."""
    (model, batch), technique = real_model(encoder), KINDS[name](epsilon=0.8, weight=0.7)
    of_words = isinstance(technique, WordAT)
    r, terms = (move_of if of_words else shift_of)(technique, model, batch)
    expected = task(model, batch) + 0.7 * task(model, batch, **{"moved" if of_words else "shift": r})
    assert_close(sum(terms.values()), expected)
    assert_gradient(model, sum(terms.values()).sum(), expected.sum())
    assert (r[~batch.mask] == 0).all()


@pytest.mark.parametrize("name", KINDS)
def test_without_weight_or_length_it_is_vanilla(name):
    model, batch = real_model()
    plain = loss(Vanilla(), model, batch)["task"]
    assert_close(sum(loss(KINDS[name](weight=0), model, batch).values()), plain)
    assert_close(loss(KINDS[name](epsilon=0), model, batch)["adversarial"], plain)


@pytest.mark.parametrize("kind", [AttentionAT, partial(WordAT, relative=False)], ids=["scores", "embeddings"])
def test_at_raises_the_loss_by_epsilon_times_the_slope_to_first_order(kind):
    """(ℓ(x + r) − ℓ(x))/ε → ‖g‖ as ε → 0, the error falling with ε; and no other direction does better."""
    model, batch = real_model()
    of_words = kind is not AttentionAT
    name, values = ("moved", model.embed(batch)) if of_words else ("shift", model(batch).scores)
    outside = ~batch.mask.unsqueeze(-1) if of_words else ~batch.mask
    zero = torch.zeros_like(values).requires_grad_()
    (g,) = torch.autograd.grad(task(model, batch, **{name: zero}).sum(), zero)
    steepest = torch.linalg.vector_norm(g.masked_fill(outside, 0.0).flatten(1), dim=-1)
    assert (steepest > 1e-4).sum() >= 3
    errors = []
    for epsilon in (1e-3, 1e-2):
        terms = loss(kind(epsilon=epsilon), model, batch)
        errors.append(((terms["adversarial"] - terms["task"]) / epsilon - steepest).abs().max().item())
    assert errors[0] < 0.2 * errors[1] < 1e-2
    for _ in range(20):
        n = torch.randn_like(g).masked_fill(outside, 0.0)
        n = 1e-2 * n / torch.linalg.vector_norm(n.flatten(1), dim=-1).clamp_min(1e-30).view(-1, *[1] * (n.ndim - 1))
        assert (task(model, batch, **{name: n}) <= terms["adversarial"] + 1e-5).all()
