"""AttnLRP: relevance of every value of a block, divided as the paper says in NumPy, and what its rules conserve."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import steadygaze as sg
from adapters.folders import KINDS, LABELS, OTHERS, TEXTS, network, tokenizer
from contract.tiny import batch, classifier, split
from explainers.worked import texts
from steadygaze.core.errors import UserError
from steadygaze.explainers.attn_lrp import RULES, AttnLrp, RelevanceRules, with_constant_weights
from steadygaze.explainers.gradient import InputXGradient
from steadygaze.models.inference import Model

SIZE, WORDS = 6, 4


class Block(Model):
    """A layer as in Llama, without positions: x + attention(norm(x)), then + gated network, of the last token."""

    capabilities = frozenset({"embeddings", "transformer"})

    def __init__(self) -> None:
        super().__init__()
        draws = torch.Generator().manual_seed(3)
        shapes = {"q": SIZE, "k": SIZE, "v": SIZE, "o": SIZE, "gate": SIZE, "up": SIZE, "down": SIZE, "head": 2}
        for name, outputs in shapes.items():
            weight = torch.randn(outputs, SIZE, generator=draws, dtype=torch.float64)
            setattr(self, name, nn.Parameter(weight))
        self.table = nn.Embedding.from_pretrained(torch.randn(9, SIZE, generator=draws, dtype=torch.float64))

    def embed(self, batch):
        return self.table(batch.ids)

    @staticmethod
    def norm(x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    def forward(self, batch, embedded=None):
        x = self.embed(batch) if embedded is None else embedded
        n = self.norm(x)
        query, key, value = (functional.linear(n, getattr(self, name)) for name in "qkv")
        attention = functional.softmax(query @ key.transpose(1, 2) / SIZE**0.5, -1)
        x = x + functional.linear(attention @ value, self.o)
        n = self.norm(x)
        gated = functional.silu(functional.linear(n, self.gate)) * functional.linear(n, self.up)
        x = x + functional.linear(gated, self.down)
        return SimpleNamespace(weights=None, logits=functional.linear(x[:, -1], self.head))


def relevance_by_hand(block: Block, ids: list[int], aim: int) -> np.ndarray:
    """Relevance of each word: every value divides its own among its inputs."""
    weight = {name: value.detach().numpy() for name, value in block.named_parameters()}

    def norm(x):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)

    def linear(x, name, relevance):  # R(x_i) = x_i Σ_j W_ji R(y_j) / y_j
        return x * ((relevance / (x @ weight[name].T)) @ weight[name])

    def product(a, b, relevance):  # of a @ b: half to each
        ratio = relevance / (a @ b) / 2
        return a * (ratio @ b.T), b * (a.T @ ratio)

    x = block.table.weight.detach().numpy()[ids]
    n = norm(x)
    query, key, value = (n @ weight[name].T for name in "qkv")
    scores = query @ key.T / SIZE**0.5
    attention = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    context = attention @ value
    attended = context @ weight["o"].T
    middle = x + attended
    m = norm(middle)
    gate, up = m @ weight["gate"].T, m @ weight["up"].T
    opened = gate / (1 + np.exp(-gate))
    written = (opened * up) @ weight["down"].T
    end = middle + written
    logits = end[-1] @ weight["head"].T

    last = np.zeros_like(end)
    last[-1] = end[-1] * weight["head"][aim]  # the explained logit alone has relevance
    assert last.sum() == pytest.approx(logits[aim])
    share = last / end
    gated = linear(opened * up, "down", written * share)
    of_m = linear(m, "gate", gated / 2) + linear(m, "up", gated / 2)  # the activation passes all of its own
    of_middle = middle * share + of_m  # so does the divisor of the norm
    share = of_middle / middle
    of_context = linear(context, "o", attended * share)
    of_attention, of_value = product(attention, value, of_context)
    of_scores = scores * (of_attention - attention * of_attention.sum(-1, keepdims=True))
    of_query, of_key = product(query, key.T, of_scores)
    of_n = linear(n, "q", of_query) + linear(n, "k", of_key.T) + linear(n, "v", of_value)
    return (x * share + of_n).sum(-1)


@pytest.mark.parametrize("aim", [0, 1])
def test_it_is_the_relevance_that_every_value_divides_among_its_inputs(aim):
    block, ids = Block(), [[1, 2, 3, 4], [5, 5, 6, 8]]
    weights = AttnLrp().explain(block, texts(*ids), torch.tensor([aim, aim])).weights
    expected = np.stack([relevance_by_hand(block, row, aim) for row in ids])
    np.testing.assert_allclose(weights.numpy(), expected, rtol=1e-9, atol=1e-12)
    plain = InputXGradient(output="logit").explain(block, texts(*ids), torch.tensor([aim, aim])).weights
    assert (weights - plain).abs().max() > 0.1  # the rules matter


ACTIVATIONS = [functional.gelu, functional.silu, torch.relu, torch.tanh, functional.leaky_relu, functional.elu]
CONSERVING = {
    "product": lambda x, y: x @ y.T,
    "of three": lambda x, y: torch.einsum("ij,kj,kl->il", x, y, y),
    "elementwise": lambda x, y: x * y,
    "with itself": lambda x, y: x * x,
    "layer norm": lambda x, y: functional.layer_norm(x, (5,), torch.linspace(0.5, 2, 5, dtype=x.dtype)),
    "norm": lambda x, y: functional.rms_norm(x, (5,), torch.linspace(0.5, 2, 5, dtype=x.dtype), 1e-6),
    "reciprocal": lambda x, y: x * (1 / (1 + y.square())),
    "quotient": lambda x, y: x / (1 + y.square()),
    "power": lambda x, y: x * (y.square().mean() + 1) ** -0.5,
    **{f.__name__: lambda x, y, f=f: f(x) for f in ACTIVATIONS},
}


@pytest.mark.parametrize("name", CONSERVING)
def test_relevance_is_conserved_and_values_are_those_of_torch(name):
    draws = torch.Generator().manual_seed(0)
    x, y = (torch.randn(4, 5, generator=draws, dtype=torch.float64).requires_grad_() for _ in range(2))
    plain = CONSERVING[name](x, y)
    with RelevanceRules():
        value = CONSERVING[name](x, y)
    torch.testing.assert_close(value, plain)
    slopes = torch.autograd.grad(value.sum(), (x, y), allow_unused=True)
    relevance = sum((z * g).sum() for z, g in zip((x, y), slopes, strict=True) if g is not None)
    torch.testing.assert_close(relevance, plain.sum())
    plain_slopes = torch.autograd.grad(plain.sum(), (x, y), allow_unused=True)
    own = sum((z * g).sum() for z, g in zip((x, y), plain_slopes, strict=True) if g is not None)
    assert name == "relu" or name == "leaky_relu" or not torch.isclose(own, plain.sum(), rtol=1e-3)


def test_fused_attention_has_the_relevance_of_its_parts():
    draws = torch.Generator().manual_seed(1)
    query, key, value = (torch.randn(1, 2, 4, 3, generator=draws, dtype=torch.float64) for _ in range(3))

    def slopes(attention):
        inputs = [part.clone().requires_grad_() for part in (query, key, value)]
        with RelevanceRules():
            result = attention(*inputs)
        return torch.autograd.grad((result * torch.linspace(1, 2, 3, dtype=result.dtype)).sum(), inputs)

    parts = slopes(lambda q, k, v: functional.softmax(q @ k.transpose(-1, -2) / 3**0.5, -1) @ v)
    for fused, separate in zip(slopes(functional.scaled_dot_product_attention), parts, strict=True):
        torch.testing.assert_close(fused, separate)


def counted(kind: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often each rule is used for one text."""
    counts = dict.fromkeys(RULES, 0)

    def counting(name, rule):
        def count(*values, **more):
            counts[name] += 1
            return rule(*values, **more)

        return count

    monkeypatch.setattr("steadygaze.explainers.attn_lrp.RULES", {name: counting(name, RULES[name]) for name in RULES})
    words = tokenizer(kind)
    sg.load((network(kind), words)).explain(TEXTS[0], explainer="attn-lrp", target=LABELS[1])
    return counts


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # DeBERTa
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind in ("bert", "llama") else pytest.mark.slow) for kind in [*KINDS, *OTHERS]],
)
def test_rules_reach_the_layers_of_an_architecture(kind, monkeypatch):
    counts = counted(kind, monkeypatch)
    layers = 2 if kind in ("t5", "mt5", "bart", "mbart", "plbart") else 3
    attention = 2 * counts["scaled_dot_product_attention"] + counts["matmul"] + counts["bmm"] + counts["einsum"]
    assert attention >= 2 * layers
    assert counts["layer_norm"] + counts["rms_norm"] + counts["rsqrt"] + counts["pow"] >= 2 * layers


def test_weights_do_not_depend_on_padding_batches_or_kernels():
    words = tokenizer("bert")
    model = sg.load((network("bert"), words))
    together = [e.weights for e in model.explain(TEXTS, explainer="attn-lrp", target=LABELS[0])]
    for text, weights in zip(TEXTS, together, strict=True):
        alone = model.explain(text, explainer="attn-lrp", target=LABELS[0]).weights
        np.testing.assert_allclose(alone, weights, rtol=1e-4, atol=1e-5)


def test_the_model_keeps_its_hooks_weights_and_gradients():
    model, words = classifier("transformer"), batch(split())
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    AttnLrp().explain(model, words)
    assert all(weight.equal(before[name]) for name, weight in model.state_dict().items())
    assert all(weight.requires_grad and weight.grad is None for weight in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())
    twin = with_constant_weights(model)
    assert all(a.data_ptr() == b.data_ptr() for a, b in zip(model.parameters(), twin.parameters(), strict=True))


def test_a_recurrent_model_is_refused():
    from estimator.tiny import tiny

    with pytest.raises(UserError, match="the model is not a transformer"):
        tiny("bilstm").fit(["good", "bad"] * 10, ["a", "b"] * 10).explain("good", explainer="attn-lrp")
