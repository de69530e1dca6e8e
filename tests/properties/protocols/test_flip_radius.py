"""The smallest change of the top words that flips the label, against models whose answer is a formula."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from contract.probing import PlantedError, failing, in_use, state
from contract.tiny import TEXTS, batch, cached_classifier, ragged, split, widened
from properties.protocols.cases import BlackBox
from properties.protocols.constant_models import ConstantExplainer
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch
from steadygaze.data.batches import Data
from steadygaze.explainers.attention import Attention
from steadygaze.models.inference import Capability, Model
from steadygaze.perturbations.gradient_ascent import embedding_norm
from steadygaze.properties.audit_case import NO_LABELS, AuditCase, Finding, lacks
from steadygaze.properties.measures.faithfulness_measures import LARGEST, RADII, SHARES
from steadygaze.properties.protocols.flip_radius import GROWTH, ROUNDS, SMALLEST, flip_radius, worst
from steadygaze.properties.protocols.flip_radius import smallest as smallest_in
from steadygaze.results.audit_config import ProbeConfig, Runtime

SEARCHED = GROWTH ** (1 / 2 ** (ROUNDS - 6)) + 0.01
"""How much too far a search may end: a rung halved four times; of a sum the ascent finds the best at once."""


@pytest.fixture
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches end earlier, in the same way for every text."""
    monkeypatch.setitem(flip_radius.__globals__, "ROUNDS", 4)
    monkeypatch.setitem(flip_radius.__globals__, "SEAT_STEPS", 3)


class Sums(Model):
    """Two classes by Σ_t u_t a·x_t + b over the words: `use` is the factor of each position."""

    capabilities: frozenset[Capability] = frozenset({"embeddings"})

    def __init__(self, bias: float = 0.7, use: Tensor | None = None) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(0)
        self.table = torch.nn.Parameter(torch.randn(23, 4, generator=draw, dtype=torch.float64))
        self.slope = torch.randn(4, generator=draw, dtype=torch.float64)
        self.bias, self.use = bias, torch.ones(12, dtype=torch.float64) if use is None else use

    @property
    def vectors(self) -> Tensor:
        return self.table

    def embed(self, batch: Batch) -> Tensor:
        return self.table[batch.ids]

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> object:
        vectors = self.embed(batch) if embedded is None else embedded
        each = (vectors @ self.slope) * self.use[: vectors.shape[1]]
        score = each.masked_fill(~batch.mask, 0.0).sum(-1) + self.bias
        return type("Output", (), {"weights": None, "logits": torch.stack([-score / 2, score / 2], -1)})

    def margin(self, batch: Batch) -> Tensor:
        return self(batch).logits.diff(dim=-1).abs().squeeze(-1).detach()


def texts(*lengths: int) -> Batch:
    return batch(Data(ragged(["w" * n for n in lengths])))


def smallest(model: Model, inputs: Batch, weights: Tensor) -> Tensor:
    return smallest_in(model, inputs, weights, embedding_norm(model.vectors))


def top_word(batch: Batch) -> Tensor:
    """The later, the heavier."""
    return torch.arange(batch.ids.shape[1], dtype=torch.float64).expand(batch.ids.shape)


# --- Yin et al.


def test_k_words_of_a_sum_must_move_by_its_margin_over_root_k():
    """δ_t = ρ a / (‖a‖ √k) on k words adds ρ ‖a‖ √k to the sum: R = margin / (‖a‖ √k); of n words k is ⌈q·n⌉."""
    model, inputs = Sums(), texts(3, 10, 7, 12, 1)
    result = smallest(model, inputs, top_word(inputs))
    words = inputs.mask.sum(-1, keepdim=True)
    many = torch.tensor([[1, 1, 2], [1, 2, 5], [1, 2, 4], [2, 3, 6], [1, 1, 1]])
    assert many.equal((words * torch.tensor(SHARES)).ceil().long().clamp_min(1))
    exact = model.margin(inputs).unsqueeze(-1) / (model.slope.norm() * many.sqrt() * embedding_norm(model.vectors))
    assert exact.max() < LARGEST
    assert (result >= exact * (1 - 1e-9)).all()
    assert (result <= exact * SEARCHED).all()


def test_only_the_words_that_count_can_turn_the_label():
    """Only word 2 decides: an explanation of word 2 flips the label, an explanation of another word never does."""
    model, inputs = Sums(use=torch.arange(12) == 2), texts(8, 6)
    at = (torch.arange(8) == 2).double().expand(2, 8)
    exact = model.margin(inputs) / (model.slope.norm() * embedding_norm(model.vectors))
    right, wrong = smallest(model, inputs, at), smallest(model, inputs, top_word(inputs))
    assert (right <= exact.unsqueeze(-1) * SEARCHED).all()
    assert (wrong == LARGEST).all()


class Snare(Sums):
    """1 + a·δ by how the fourth word is moved, and a steep and narrow valley by how the third is: of no use, but every
    gradient leads there, and every step leaps across."""

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> object:
        moved = (0 if embedded is None else embedded - self.embed(batch)) + 0 * self.embed(batch)
        along = moved @ self.slope / self.slope.norm()  # (B,T)
        score = 1 + along[:, 3] + 50 * along[:, 2] + 1000 * along[:, 2] ** 2
        return type("Output", (), {"weights": None, "logits": torch.stack([-score / 2, score / 2], -1)})


def test_a_larger_set_is_never_harder_to_turn():
    """1 / mean length is far enough for the fourth word alone; a search of its own for both would be ensnared."""
    model, inputs = Snare(), texts(4, 4)
    result = smallest(model, inputs, top_word(inputs))
    assert (result[:, 0] <= SEARCHED / embedding_norm(model.vectors)).all()
    assert (result.diff(dim=-1) <= 0).all()


def test_a_real_model_turns_with_more_words_sooner():
    inputs = batch(split(["s" + "w" * (4 + n % 12) + "s" for n in range(12)]))
    result = smallest(cached_classifier("transformer"), inputs, torch.rand(inputs.ids.shape))
    assert (result.diff(dim=-1) <= 0).all()
    assert (result.diff(dim=-1) < 0).any()
    assert result.min() > SMALLEST


@pytest.mark.slow
@pytest.mark.usefixtures("few_rounds")
def test_what_is_found_does_not_depend_on_padding_or_on_the_texts_beside_it():
    model, inputs = cached_classifier("transformer"), batch(split(["sww", "wwwwww", "swwwwwws"]))
    result, wide = smallest(model, inputs, top_word(inputs)), widened(inputs, 3)
    torch.testing.assert_close(smallest(model, wide, top_word(wide)), result, rtol=1e-6, atol=0)
    for row in range(3):
        alone = batch(split(["sww", "wwwwww", "swwwwwws"]), [row])
        torch.testing.assert_close(smallest(model, alone, top_word(alone)), result[[row]], rtol=1e-6, atol=0)


def test_a_text_without_a_word_has_no_words_to_move():
    result = smallest(cached_classifier("cnn"), batch(split()), top_word(batch(split())))
    assert result.isnan().any(-1).tolist() == [pattern.count("w") == 0 for pattern in TEXTS]


# --- SEAT's


def test_all_words_of_a_sum_are_moved_to_the_worst_corner():
    """‖δ‖∞ ≤ r: the margin of the label falls by r ‖a‖₁ n, whatever the explanation."""
    model, inputs = Sums(), replace(texts(3, 10, 7), label=torch.tensor([1, 0, 1]))
    result = worst(model, inputs, RandomKey(0))
    sign = 2 * inputs.gold - 1
    clean = model(inputs).logits.diff(dim=-1).squeeze(-1) * sign
    fall = torch.tensor(RADII) * model.slope.abs().sum() * inputs.mask.sum(-1, keepdim=True)
    expected = (clean.unsqueeze(-1) - fall).sigmoid()
    torch.testing.assert_close(result[torch.arange(3), :, inputs.gold], expected.detach(), rtol=0, atol=1e-6)


# --- the protocol


def case_of(
    model: Model, lengths: list[int], plan: ProbeConfig | None = None, size: int = 256, **weights: Tensor
) -> AuditCase:
    data = Data(ragged(["w" * n for n in lengths]), None, np.arange(len(lengths)) % 2)
    explainers = {name: ConstantExplainer(w) for name, w in weights.items()}
    return AuditCase(model, data, explainers, plan or ProbeConfig(), runtime=Runtime(batch_size=size))


def findings_in(case: AuditCase) -> dict[tuple[str, str | None], Finding]:
    return {(finding.measure, finding.explainer): finding for finding in flip_radius(case)}


def test_an_explainer_that_knows_the_decisive_word_is_better_than_random_and_another_is_worse():
    known = (torch.arange(12) == 2).double().expand(40, 12)
    findings = findings_in(case_of(Sums(use=torch.arange(12) == 2), [12] * 40, known=known, aside=1 - known))
    above = {name: findings["flip-radius/above-random", name].values.mean().item() for name in ("known", "aside")}
    assert above["known"] < -1
    assert above["aside"] > 0.2
    own = findings["flip-radius", "known"].values - findings["flip-radius", "random"].values
    torch.testing.assert_close(findings["flip-radius/above-random", "known"].values, own)
    assert findings["flip-radius", "known"].settings == {"sizes": "10,20,50%", "largest": LARGEST}
    assert (
        findings["flip-radius", "aside"].notes[0].sentence.endswith("of 40 texts does not flip within 8 at every size")
    )


def test_random_words_are_those_of_the_explainer_called_random_where_there_is_one():
    known = (torch.arange(12) == 2).double().expand(10, 12)
    case = case_of(Sums(use=torch.arange(12) == 2), [12] * 10, random=known, known=known)
    findings = findings_in(case)
    assert not findings["flip-radius/above-random", "known"].values.any()
    assert ("flip-radius/above-random", "random") not in findings


@pytest.mark.slow
@pytest.mark.usefixtures("few_rounds")
def test_it_is_measured_on_a_sample_independent_of_batch_and_order():
    weights = torch.rand(12, 12, dtype=torch.float64)
    lengths = [3, 8, 1, 5, 9, 7, 2, 12, 4, 6, 5, 3]
    findings = findings_in(case_of(Sums(), lengths, ProbeConfig(sample=7), one=weights))
    other = findings_in(case_of(Sums(), lengths, ProbeConfig(sample=7), 2, one=weights))
    for key, finding in findings.items():
        assert (~finding.values.isnan()).sum() == 7
        torch.testing.assert_close(other[key].values, finding.values, rtol=1e-9, atol=1e-12, equal_nan=True)


def test_a_black_box_has_no_vectors_to_move_and_texts_without_labels_no_wrong_answer():
    data = Data(ragged(["www"] * 3))
    findings = findings_in(AuditCase(BlackBox(), data, {"one": ConstantExplainer(torch.rand(3, 3))}))
    assert {finding.absent for finding in findings.values()} == {lacks("embeddings")}
    findings = findings_in(AuditCase(Sums(), data, {"one": ConstantExplainer(torch.rand(3, 3))}))
    assert findings["seat-sensitivity", None].absent == NO_LABELS
    assert not findings["flip-radius", "one"].absent


@pytest.mark.usefixtures("few_rounds")
def test_the_model_is_left_as_it_was_even_after_a_failure():
    model = in_use("bilstm")
    before, case = state(model), AuditCase(model, split(), {"attention": Attention()}, ProbeConfig(sample=3))
    list(flip_radius(case))
    assert state(model) == before
    with failing(model, "encode", 5), pytest.raises(PlantedError):
        list(flip_radius(AuditCase(model, split(), {"attention": Attention()}, ProbeConfig(sample=3))))
    assert state(model) == before
