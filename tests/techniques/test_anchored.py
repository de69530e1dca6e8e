"""Anchored: its terms by hand, which outputs are compared, and that uninformative attention has a cost."""

import copy
import math
from dataclasses import fields, replace

import pytest
import torch

from contract.tiny import VOCABULARY, assert_close, split
from contract.tiny import batch as whole
from steadygaze.core.maths.distributions import cross_entropy
from steadygaze.perturbations.word_substitution import Synonyms, without_synonyms
from steadygaze.techniques.anchored import Anchored, stack_versions
from steadygaze.techniques.seat import top_k_distance
from techniques.byhand import LN3, assert_gradient, by_hand, even, frozen, loss, real_model, record_calls, texts
from training.toys import make_run

OFF = {"noise": 0, "swaps": 0, "stability": 0}


def synonyms(size: int = VOCABULARY, pairs: dict[int, int] | None = None) -> Synonyms:
    """One synonym each; by default every id but padding has its neighbor's id."""
    pairs = pairs or {word: word % (size - 1) + 1 for word in range(1, size)}
    table, count = torch.zeros(size, 1, dtype=torch.long), torch.zeros(size, dtype=torch.long)
    for word, other in pairs.items():
        table[word, 0], count[word] = other, 1
    return Synonyms(table, count, torch.zeros(size, dtype=torch.bool))


def student(encoder: str = "bilstm"):
    """A reference, a model that differs from it everywhere, and texts."""
    reference, batch = real_model(encoder)
    model = copy.deepcopy(reference)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return {"reference": frozen(reference)}, model, batch


def distance(technique, models, batch, output):
    """A: the distance of a model's output from the output of the reference on the clean text."""
    clean = models["reference"](batch)
    close = cross_entropy(clean.logits.softmax(-1), output.logits)
    return technique.closeness * close + technique.overlap * top_k_distance(
        clean.weights, output.weights, batch.mask, technique.k
    )


def test_the_terms_by_hand():
    """Text (1, 2), x_1 = (ln 3, 4 ln 3), x_2 = 0: w = (¾, ¼), p = 27/28 = y: the model is its own reference.

    task: λp H(p).  top-k: 0.  Word 3, the synonym of 1, is (0, 4 ln 3): w̃(x′) = (½, ½), y(x′) = 9/10, so that
    A(x′) = λp (−27/28 ln(9/10) − 1/28 ln(1/10)) + λ2 · ¼.
    D2: a_10 = (4 ln 3, 0), R = ¼: margins 3 ln 3 ± ln 3, y = 9/10 or 81/82; the first is the worse: CE(p, 9/10) − H(p).
    """
    model, batch = by_hand([(LN3, 4 * LN3), (0, 0), (0, 4 * LN3)]), texts([1, 2])
    technique = Anchored(closeness=2, overlap=4, swaps=0.5, share=1, noise=0, stability=3, radius=0.25)
    arguments = {"models": {"reference": frozen(model)}, "synonyms": synonyms(4, {1: 3})}
    results = {name: value.item() for name, value in loss(technique, model, batch, **arguments).items()}
    p = 27 / 28
    swapped = -p * math.log(0.9) - (1 - p) * math.log(0.1)
    entropy = -p * math.log(p) - (1 - p) * math.log(1 - p)
    expected = {
        "task": 2 * entropy,
        "top-k": 0,
        "swaps": 0.5 * (2 * swapped + 4 / 4),
        "stable": 3 * (swapped - entropy),
    }
    assert results == pytest.approx(expected, abs=1e-12)


def test_noise_by_hand():
    """One word, (0, 2 ln 3): σ = ln 3 (entries 0 and 2 ln 3), so `noise_radius` ½ is a step of ½ ln 3.

    p = 9/10.  A grows on either side of the clean text, so where the random start leans decides: y(x + r) has margin
    (2 ± ½) ln 3.  No attention to compare: the only word weighs 1.
    """
    model, batch = by_hand([(0, 2 * LN3)]), texts([1])
    technique = Anchored(**{**OFF, "noise": 1}, noise_radius=0.5, closeness=1)
    result = loss(technique, model, batch, models={"reference": frozen(model)})["noise"].item()
    ends = [
        0.9 * math.log(1 + math.exp(-margin)) + 0.1 * math.log(1 + math.exp(margin))
        for margin in (1.5 * LN3, 2.5 * LN3)
    ]
    assert min(abs(result - end) for end in ends) < 1e-12


def test_without_noise_swaps_and_regularisers_it_is_distillation():
    models, model, batch = student()
    terms = loss(Anchored(**OFF, overlap=0, closeness=2.5), model, batch, models=models)
    expected = 2.5 * cross_entropy(models["reference"](batch).logits.softmax(-1), model(batch).logits)
    assert_close(sum(terms.values()), expected)
    assert_gradient(model, sum(terms.values()).sum(), expected.sum())


@pytest.mark.parametrize("encoder", ["average", "bilstm", "transformer"])
def test_the_perturbation_stays_in_its_ball_and_off_specials_and_padding(encoder):
    models, model, batch = student(encoder)
    technique = Anchored(**{**OFF, "noise": 1}, noise_radius=0.3)
    size = 0.3 * technique.on_epoch_start(model, None)["sigma"]
    calls = record_calls(model, "encode")
    loss(technique, model, batch, models=models)
    clean, moved = calls[-1][1].detach().chunk(2)
    assert_close(clean, model.embed(batch).detach())
    r = moved - clean
    assert r.abs().max() <= size * (1 + 1e-12)
    assert (r[~batch.mask] == 0).all()
    assert (r[batch.mask] != 0).any(-1).all()


def test_the_perturbation_leads_uphill_and_is_a_constant():
    models, model, batch = student()
    technique = Anchored(**{**OFF, "noise": 0.7}, noise_radius=0.02)
    calls = record_calls(model, "encode")
    terms = loss(technique, model, batch, models=models)
    start = calls[0][1].detach()
    r = calls[-1][1].detach().chunk(2)[1] - model.embed(batch).detach()

    def away(vectors):
        return distance(technique, models, batch, model(batch, vectors))

    fixed = away(model.embed(batch) + r)
    assert_close(terms["noise"], 0.7 * fixed)
    words = batch.mask.any(-1)
    assert (fixed > away(start))[words].all()
    rest = {name: value for name, value in terms.items() if name != "noise"}
    clean = distance(technique, models, batch, model(batch))
    assert_close(sum(rest.values()), clean)
    assert_gradient(model, sum(terms.values()).sum(), (clean + 0.7 * fixed).sum())


def test_under_substitution_the_target_is_the_output_of_the_reference_on_the_clean_text():
    """With share 1 and one synonym each, nothing is random."""
    models, model, batch = student()
    known = synonyms()
    technique = Anchored(**{**OFF, "swaps": 0.7}, share=1)
    terms = loss(technique, model, batch, models=models, synonyms=known)
    other = replace(batch, ids=torch.where(batch.mask, known.table[batch.ids, 0], batch.ids))
    assert (other.ids != batch.ids)[batch.mask].all()
    assert_close(terms["swaps"], 0.7 * distance(technique, models, batch, model(other)))
    assert (terms["swaps"] - 0.7 * distance(technique, models, other, model(other))).abs().max() > 1e-3


def test_all_versions_go_through_the_encoder_as_one_batch():
    models, model, batch = student()
    calls = record_calls(model, "encode")
    terms = loss(Anchored(), model, batch, models=models, synonyms=synonyms())
    assert [len(call[1]) for call in calls] == [len(batch), 3 * len(batch)]  # the search for r, then all three
    assert list(terms) == ["task", "top-k", "noise", "swaps", "stable"]


@pytest.mark.parametrize("pair", [False, True])
def test_a_stacked_batch_is_the_batch_several_times(pair):
    batch = whole(split(pair=pair))
    three = stack_versions(batch, 3)
    assert len(three) == 3 * len(batch)
    for name in {field.name for field in fields(batch)} - {"label", "weight"}:
        value = getattr(batch, name)
        assert value is None or torch.equal(getattr(three, name), torch.cat([value] * 3))
    assert three.label is None


@pytest.mark.parametrize("technique", [Anchored(**OFF), Anchored(noise_radius=0.01)], ids=["clean", "whole"])
def test_uninformative_attention_costs_more_than_that_of_the_reference(technique):
    reference, batch = real_model("average")
    several = batch.mask.sum(-1) > 1
    arguments = {"models": {"reference": frozen(reference)}, "synonyms": synonyms(pairs={4: 5})}
    own, nothing = (sum(loss(technique, model, batch, **arguments).values()) for model in (reference, even(reference)))
    assert (nothing > own + 0.1)[several].all()


def test_without_a_table_no_word_is_substituted():
    """Words 1 and 2 lie close together; neighbors are not synonyms."""
    model, batch = by_hand([(1, 5), (1, 5.1), (5, -1)]), texts([1, 3])
    nobody = without_synonyms(4, torch.zeros(4, dtype=torch.bool), torch.tensor([False, True, True, True]))
    technique = Anchored(**{**OFF, "swaps": 1}, share=1)
    calls = record_calls(model, "embed")
    terms = loss(technique, model, batch, models={"reference": frozen(model)}, synonyms=nobody)
    assert all(inputs.ids.tolist() == [[1, 3]] for inputs, *_ in calls)
    assert list(terms) == ["task", "top-k"]


def test_a_word_without_a_synonym_stays_and_then_the_swapped_text_is_the_clean_one():
    models, model, batch = student()
    nobody = synonyms(pairs={VOCABULARY - 1: 1})
    batch = replace(batch, ids=batch.ids.clamp_max(VOCABULARY - 2))
    terms = loss(Anchored(**{**OFF, "swaps": 1}, share=1), model, batch, models=models, synonyms=nobody)
    assert_close(terms["swaps"], terms["task"] + terms["top-k"])


def test_the_model_starts_from_its_reference_and_all_of_it_moves():
    run = make_run(Anchored(**OFF), epochs=1)
    model = run.execute()
    assert [(stage.model, stage.start) for stage in Anchored().stages(3)] == [
        ("reference", None),
        ("model", "reference"),
    ]
    moved = {
        name.split(".")[0]
        for name, value in model.state_dict().items()
        if not torch.equal(value, run.models["reference"].state_dict()[name])
    }
    assert moved == {"encoder", "scorer", "decoder"}
    assert run.history[-1]["attention"]["overlap"] > 0.9
