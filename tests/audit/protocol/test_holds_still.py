"""Does attention hold still: a number per text and question, asked of models built to be faithful and unfaithful."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from contract.probing import in_use, state, synonyms
from contract.tiny import TEXTS, assert_close, batch, cached_classifier, classifier, split
from steadygaze.audit.probe import embeddings
from steadygaze.audit.probe.gradient import gradient
from steadygaze.audit.probe.look import look
from steadygaze.audit.protocol import holds_still as protocol
from steadygaze.audit.protocol.holds_still import Plan, holds_still
from steadygaze.batch import Data
from steadygaze.infer import readings
from steadygaze.maths.chance import Chance
from steadygaze.maths.collapse import judge
from steadygaze.maths.divergence import jensen_shannon
from steadygaze.maths.rank import FEWEST, pearson
from steadygaze.model import Architecture, Classifier, word_encoder
from steadygaze.perturb.words import Synonyms
from steadygaze.tokens.ragged import Ragged, starts_of
from steadygaze.types import Encoded

PLAN = Plan(synonyms={"1-synonym": (synonyms(), 1), "3-synonyms": (synonyms(), 3)}, seed=4)
PROBES = ("noise", "worst-label", "worst-attention", "1-synonym", "3-synonyms")
MOVED = ("jensen-shannon", "prediction-change", "flipped")
GRADIENTS = ("pearson/gradient", "pearson/gradient-through-attention")
ITSELF = ("evenness", "distance-to-uniform", "comprehensiveness", "sufficiency", *GRADIENTS)
MODEL = pytest.mark.parametrize("encoder", ["bilstm", "cnn", "transformer"])
PAIR = pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])


def row_of(data: Data, row: int) -> Data:
    question = None if data.question is None else data.question.select([row])
    return Data(data.text.select([row]), question, data.label[[row]])


# --- one number per text and question, each text by itself


@PAIR
@MODEL
def test_one_number_per_text_and_question_in_the_order_of_the_split_as_if_asked_text_by_text(encoder, pair):
    model, data = cached_classifier(encoder, pair), split(pair=pair)
    found = holds_still(model, data, PLAN)
    asked = [
        f"{question}/{probe}"
        for probe in PROBES
        for question in (*MOVED, *(["exchanged"] if "synonym" in probe else []))
    ]
    assert list(found) == asked + list(ITSELF)
    for name, values in found.items():
        assert values.shape == (len(TEXTS),), name
        assert values.dtype == torch.float64
    for row in range(len(data)):
        for name, value in holds_still(model, row_of(data, row), PLAN).items():
            torch.testing.assert_close(value, found[name][[row]], rtol=0, atol=1e-12, equal_nan=True, msg=name)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_size_of_a_batch_does_not_matter(size, monkeypatch):
    """12 texts: none is lost where they do not divide evenly."""
    model, data = cached_classifier(), split(["s" + "w" * n + "s" for n in (3, 9, 1, 0, 5, 5, 2, 8, 4, 7, 6, 3)])
    found = holds_still(model, data, PLAN)
    monkeypatch.setattr(protocol, "BATCH", size)
    torch.testing.assert_close(holds_still(model, data, PLAN), found, rtol=0, atol=1e-12, equal_nan=True)
    assert {len(values) for values in found.values()} == {12}


@pytest.mark.parametrize("encoder", ["bilstm", "transformer"])
def test_the_whole_audit_leaves_the_model_as_it_was(encoder):
    model = in_use(encoder)
    before = state(model)
    holds_still(model, split(), PLAN)
    assert state(model) == before


def test_a_number_is_what_its_probe_and_its_measure_say():
    model, data = cached_classifier(), split()
    texts, found = batch(data), holds_still(model, data, PLAN)
    clean = look(model, texts)
    for name, seen in (
        ("noise", embeddings.noise(model, texts, PLAN.radius, Chance(4).child(1))),
        ("worst-label", embeddings.worst_for_label(model, texts, PLAN.radius)),
        ("worst-attention", embeddings.worst_for_attention(model, texts, PLAN.radius, Chance(4).child(2))),
    ):
        some = texts.mask.any(-1)
        moved = jensen_shannon(clean.weights, seen.weights, texts.mask)
        assert_close(found[f"jensen-shannon/{name}"][some], moved[some])
        assert_close(found[f"prediction-change/{name}"][some], ((clean.probs - seen.probs).abs().sum(-1) / 2)[some])
    several = texts.mask.sum(-1) >= FEWEST
    agree = pearson(clean.weights, gradient(model, texts, detach_attention=True), texts.mask)  # as Jain & Wallace
    assert_close(found["pearson/gradient"][several], agree[several])
    agree = pearson(clean.weights, gradient(model, texts, detach_attention=False), texts.mask)
    assert_close(found["pearson/gradient-through-attention"][several], agree[several])


def test_only_what_is_drawn_depends_on_the_seed():
    model, data = cached_classifier(), split(["w" * 9] * 3)
    found, other = (holds_still(model, data, replace(PLAN, seed=seed)) for seed in (0, 1))
    for name, values in found.items():
        drawn = name.endswith(("/noise", "-synonym", "/worst-attention", "-synonyms")) and not name.startswith(
            ("flipped", "exchanged")
        )
        assert values.equal(other[name]) != drawn, name


def test_a_table_of_synonyms_cannot_take_the_name_of_another_probe():
    with pytest.raises(ValueError, match="a probe is called noise already"):
        Plan(synonyms={"noise": (synonyms(), 1)}).probes()


@PAIR
def test_nothing_but_a_correlation_of_too_few_words_and_a_move_of_no_word_is_undefined(pair):
    """TEXTS has texts of none and of one word.  A correlation also says nothing where all weights are one weight."""
    data = split([*TEXTS, "ww", "www"], pair)
    found = holds_still(cached_classifier("bilstm", pair), data, PLAN)
    words = batch(data).mask.sum(-1)
    few = words < FEWEST
    for name, values in found.items():
        none = found[f"exchanged/{probe}"] == 0 if "synonym" in (probe := name.rpartition("/")[2]) else words == 0
        expected = few if name in GRADIENTS else none & name.startswith(MOVED)
        assert values.isnan().equal(expected), name
        assert not values.isinf().any()
    for name in ("comprehensiveness", "sufficiency"):
        assert not found[name][words == 0].any(), name


# --- models whose attention holds still because it says nothing


class ByPlace(nn.Module):
    """Weights that halve from word to word, whatever the text."""

    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        weights = 0.5 ** mask.cumsum(-1).to(scores.dtype) * mask + 0 * scores
        return weights / weights.sum(-1, keepdim=True).clamp_min(1e-9)


@pytest.mark.parametrize("kind", ["uniform", "constant"])
def test_constant_attention_does_not_move_and_is_said_to_have_collapsed(kind):
    model = classifier("bilstm")
    model.decoder.output.weight.data *= 10
    if kind == "uniform":
        model.scorer.weigh.weight.data.zero_()
    else:
        model.attention = ByPlace()
    data = split(["s" + "w" * n + "s" for n in range(2, 14)])
    found = holds_still(model, data, PLAN)
    for name in PROBES:
        assert found[f"jensen-shannon/{name}"].nan_to_num().abs().max() < 1e-15
        assert (
            found[f"prediction-change/{name}"].nan_to_num().max() > 1e-3
        )  # it is the attention that stands still, not the model
    read = readings(model, data)
    verdict = judge(read.weights.double(), read.mask, ids=read.ids)
    assert verdict.collapsed
    assert getattr(verdict, kind)
    assert found["pearson/gradient"].isnan().all() == (kind == "uniform")
    assert (found["distance-to-uniform"].max() < 1e-15) == (kind == "uniform")


# --- a toy of which everything is known: "good" or "bad" among words that mean nothing

GOOD, BAD, CHATTER, ALSO = 2, 3, 4, 5
LENGTH = 10


def toy() -> tuple[Data, Tensor]:
    """20 texts of ten words, one of them good or bad; and where it stands."""
    random = np.random.default_rng(0)
    ids = random.choice([CHATTER, ALSO], (20, LENGTH)).astype(np.int32)
    place = random.integers(0, LENGTH, 20)
    label = np.arange(20) % 2
    ids[np.arange(20), place] = np.where(label == 1, GOOD, BAD)
    starts = starts_of(np.full(20, LENGTH, np.int64))
    flat = Ragged(ids.ravel(), np.ones(ids.size, np.bool_), starts, np.zeros(20, np.bool_))
    return Data(flat, None, label.astype(np.int64)), torch.from_numpy(place)


def reader(looks_at: float) -> Classifier:
    """Three hidden units, of good, bad and chatter; scores `looks_at` for the first two and its opposite for chatter.

    Attention at good and bad alone for +20, at chatter alone for −20.  Logits ±10 by the context.
    """
    shape = Architecture(hidden=2, dimension=4, score="dot")
    model = Classifier(word_encoder("average", shape, 6, False), shape, 2, False).double().eval()
    one = torch.eye(4, dtype=torch.float64)
    model.encoder.embedding.weight.data = torch.stack(
        [0 * one[0], 0 * one[0], one[0], one[1], one[2], one[2] + one[3] / 9]
    )
    model.encoder.text.project.weight.data = one * torch.tensor([[1.0], [1.0], [1.0], [0.0]])
    model.encoder.text.project.bias.data.zero_()
    model.scorer.key.data = looks_at * torch.tensor([1.0, 1.0, -1.0, 0.0], dtype=torch.float64)
    model.decoder.output.weight.data = 10 * torch.tensor([[0.0, 1, 0, 0], [1, 0, 0, 0]], dtype=torch.float64)
    model.decoder.output.bias.data.zero_()
    return model


class Highest(nn.Module):
    """A decoder that takes each hidden unit at its highest, and no notice of the weights."""

    def __init__(self, output: nn.Linear) -> None:
        super().__init__()
        self.output = output

    def forward(self, encoded: Encoded, weights: Tensor) -> Tensor:
        logits: Tensor = self.output(encoded.hidden.amax(1))
        return logits


def test_a_model_that_attends_to_its_only_reason_is_comprehensive_and_sufficient():
    """p = 1/(1 + e^−10) with the word, ½ without: ½ is lost at every share, nothing when all else goes."""
    data, place = toy()
    model = reader(20.0)
    assert look(model, batch(data)).weights.argmax(-1).equal(place)
    found = holds_still(model, data, Plan())
    assert found["comprehensiveness"].tolist() == pytest.approx([0.5] * 20, abs=1e-3)
    assert found["sufficiency"].abs().max() < 1e-3
    assert found["evenness"].max() < 0.05
    assert found["pearson/gradient"].min() > 0.999
    assert not found["flipped/noise"].any()


def test_a_model_that_ignores_its_attention_is_found_out():
    """Its attention lies on chatter, its decoder reads good and bad: taking the heaviest words away changes nothing,
    leaving them alone all: until at 50 % the reason, lightest of all, is still not among the five heaviest."""
    data, _ = toy()
    model = reader(-20.0)
    model.decoder = Highest(model.decoder.output)
    found = holds_still(model, data, Plan())
    assert found["comprehensiveness"].abs().max() < 1e-12
    assert found["sufficiency"].tolist() == pytest.approx([0.5] * 20, abs=1e-3)
    assert found["pearson/gradient"].max() < 0


def test_an_exchange_of_the_reason_flips_the_label_and_leaves_the_attention_where_it_was():
    """Good and bad stand for each other, nothing else for anything; both draw the same score."""
    data, _ = toy()
    swap = torch.tensor([0, 1, BAD, GOOD, CHATTER, ALSO])
    count = torch.tensor([0, 0, 1, 1, 0, 0])
    table = Synonyms(swap.unsqueeze(-1), count, torch.zeros(6, dtype=torch.bool))
    found = holds_still(reader(20.0), data, Plan(synonyms={"turned": (table, 3)}))
    assert found["flipped/turned"].tolist() == [1.0] * 20
    assert found["prediction-change/turned"].min() > 0.99
    assert found["jensen-shannon/turned"].max() < 1e-12


def test_the_worst_for_attention_moves_it_further_than_noise_and_noise_further_than_nothing():
    model, data = reader(4.0), toy()[0]
    found = holds_still(model, data, Plan())
    noise, worst = found["jensen-shannon/noise"], found["jensen-shannon/worst-attention"]
    assert (noise > 0).all()
    assert (worst > noise).all()
    still = holds_still(model, data, Plan(radius=0.0))
    for name in ("noise", "worst-label", "worst-attention"):
        for question in MOVED:
            assert not still[f"{question}/{name}"].any()
