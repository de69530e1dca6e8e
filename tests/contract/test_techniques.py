"""What every training technique keeps to; adding a line to TECHNIQUES is all it takes to be tested here."""

import dataclasses
import json
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from steadygaze.core.random_key import RandomKey
from steadygaze.core.settings import build, descriptions, field_names
from steadygaze.core.types import Batch, Terms
from steadygaze.data.batches import collate
from steadygaze.models import inference
from steadygaze.models.inference import Model
from steadygaze.perturbations.word_substitution import Synonyms
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.technique import CachedTargets, LossContext, Technique
from training.toys import WORDS, corpus, make_run, model_for

ROUNDING = 1e-12  # float64
COMPARES_EXAMPLES = {"mask-neutral"}  # its weights are one on average over a batch
"""Techniques whose terms for a text depend on the others in its batch."""
QUICK = {"three-player": {"granularity": "sentence"}, "consensus": {"teachers": 2}}
"""Settings for eighteen steps of eight texts.  Three-player learns too slowly where it draws single words."""

pytestmark = pytest.mark.parametrize("name", TECHNIQUES)


def model_of(technique: Technique, seed: int = 0) -> Model:
    torch.manual_seed(seed)
    return model_for(technique, dtype=torch.float64, dropout=0.0)


def batch_of(rows: list[int]) -> Batch:
    """Some texts of the toy corpus, lengths 1 to 9."""
    return collate(corpus(), np.array(rows))


def synonyms_of() -> Synonyms:
    """For the toy vocabulary: words 2 to 13 have one to three others, the rest none; word 19 continues the one before.

    A table row is filled up with 0, the id of padding, which is never drawn.
    """
    table, count = torch.zeros(WORDS, 3, dtype=torch.long), torch.zeros(WORDS, dtype=torch.long)
    for word in range(2, 14):
        others = [(word + step) % 15 + 2 for step in range(1, word % 3 + 2)]
        count[word] = len(others)
        table[word, : len(others)] = torch.tensor(others)
    return Synonyms(table, count, torch.arange(WORDS) == WORDS - 1)


def finished(technique: Technique) -> dict[str, Model]:
    """A model for every stage but the result's, no two alike."""
    names = sorted({stage.model for stage in technique.stages(0)} - {"model"})
    return {name: model_of(technique, 1 + i).eval().requires_grad_(False) for i, name in enumerate(names)}


def student(technique: Technique) -> Model:
    """The model in mid-course of the last stage: what that does not train is as the model it starts from has it."""
    model, last = model_of(technique), technique.stages(0)[-1]
    if last.start is not None:
        kept = finished(technique)[last.start].state_dict()
        held = {name: value for name, value in kept.items() if not f"model.{name}".startswith(last.trains)}
        model.load_state_dict({**model.state_dict(), **held})
    return model


def context_for(technique: Technique, model: Model, batch: Batch) -> LossContext:
    """What the loop would hand over in the last stage."""
    models, synonyms = finished(technique), synonyms_of()
    with torch.no_grad():
        memory = technique.cache_targets(models, batch)
    torch.manual_seed(2)
    modules = {name: module.to(torch.float64) for name, module in technique.modules(model).items()}
    tables = technique.on_epoch_start(model, synonyms)
    return LossContext(models, modules, RandomKey(0), 0.5, memory, tables, synonyms, torch.tensor([0.5, 0.5]))


def terms_of(name: str, batch: Batch) -> Terms:
    technique = TECHNIQUES[name]()
    model = student(technique)
    return technique.loss(model, batch, context_for(technique, model, batch))


def labels_loss(model: Model) -> float:
    """Mean cross-entropy of the training labels, read without dropout: what every technique must learn."""
    data = corpus()
    return float(cross_entropy(inference.logits(model, data), torch.from_numpy(data.label)))


def test_terms_are_one_finite_number_for_each_text_and_one_of_them_can_be_minimized(name: str) -> None:
    terms = terms_of(name, batch_of(list(range(12))))
    assert all(value.shape == (12,) and value.isfinite().all() for value in terms.values())
    assert "task" in terms
    assert sum(terms.values()).sum().requires_grad


@pytest.mark.sweep(keep=6)
def test_a_batch_is_its_texts_one_by_one_unless_the_technique_declares_otherwise(name: str) -> None:
    together = terms_of(name, batch_of([0, 1, 2, 3]))
    alone = [terms_of(name, batch_of([row])) for row in range(4)]
    same = all(torch.allclose(together[k], torch.cat([a[k] for a in alone]), rtol=0, atol=ROUNDING) for k in together)
    assert same == (name not in COMPARES_EXAMPLES)


def test_a_loss_leaves_model_mode_and_gradients_alone_and_repeats_bit_for_bit(name: str) -> None:
    technique, batch = TECHNIQUES[name](), batch_of([0, 1, 2])
    model = student(technique)
    context = context_for(technique, model, batch)

    def look() -> list[object]:
        values = [(value.tolist(), value.requires_grad, value.grad) for value in model.parameters()]
        return [values, [module.training for module in model.modules()]]

    before, random_state = look(), torch.get_rng_state()
    first = technique.loss(model, batch, context)
    assert look() == before
    assert torch.equal(torch.get_rng_state(), random_state)  # a loss draws from `context.key`
    again = technique.loss(model, batch, context)
    assert look() == before
    assert all(torch.equal(first[key], again[key]) for key in first)


@pytest.mark.parametrize("largest", [0, 2])
def test_a_loss_can_do_without_the_large_things_it_remembers(name: str, largest: int) -> None:
    """What belongs to tokens may be too large to be kept; then it is made anew, and nothing else changes."""
    technique, batch = TECHNIQUES[name](), batch_of([0, 1, 2, 3])
    model = student(technique)
    context = context_for(technique, model, batch)
    targets = context.cached_targets
    small = CachedTargets(targets.texts, {key: v for key, v in targets.tokens.items() if v.ndim <= largest})
    kept, anew = (
        technique.loss(model, batch, dataclasses.replace(context, cached_targets=t)) for t in (targets, small)
    )
    assert kept.keys() == anew.keys()
    for key in kept:
        torch.testing.assert_close(anew[key], kept[key], rtol=0, atol=ROUNDING)


def test_settings_and_state_survive_json(name: str) -> None:
    technique = TECHNIQUES[name]()
    moved = technique.after_step({key: value.detach() for key, value in terms_of(name, batch_of([0, 1])).items()})
    for variant in (technique, moved):
        assert build(type(variant), json.loads(json.dumps(dataclasses.asdict(variant)))) == variant


def test_what_it_declares_hangs_together(name: str) -> None:
    technique = TECHNIQUES[name]()
    stages, terms = technique.stages(0), terms_of(name, batch_of([0, 1]))
    assert stages[-1].model == "model"
    made: set[str] = set()
    for stage in stages:
        assert stage.start is None or stage.start in made
        made.add(stage.model)
    for player in technique.players():
        assert set(player.terms or ()) <= set(terms)
        assert 0 <= player.offset < player.every


@pytest.mark.sweep(keep=5)
def test_eighteen_steps_a_stage_lower_what_is_minimized_and_teach_the_labels(name: str) -> None:
    technique = TECHNIQUES[name](**QUICK.get(name, {}))
    steps = {"epochs": 3, "learning_rate": 0.02} if name != "hardkuma" else {"epochs": 5}  # its multipliers rise first
    encoder = "bilstm" if name == "hardkuma" else "average"
    run = make_run(technique, partial(model_for, technique, encoder), data=corpus(), **steps)
    run.job = dataclasses.replace(run.job, synonyms=synonyms_of())
    torch.manual_seed(0)
    fresh, trained = labels_loss(model_for(technique, encoder)), labels_loss(run.execute())
    assert trained < 0.95 * fresh
    last = [record["terms"] for record in run.history if record["stage"] == run.history[-1]["stage"]]
    assert min(sum(terms.values()) for terms in last[1:]) < sum(last[0].values())
    *earlier, stage = run.technique.stages(0)
    # A student that starts from its teacher agrees with it at once; a model that goes on has learned the labels before.
    if stage.start is None and stage.model not in {earlier_stage.model for earlier_stage in earlier}:
        assert min(terms["task"] for terms in last[1:]) < 0.95 * last[0]["task"]


def test_every_technique_and_setting_has_a_description(name: str) -> None:
    """The first line of its docstring is what `steadygaze list techniques` prints; every setting has a description."""
    technique = TECHNIQUES[name]
    assert technique.__doc__
    assert set(field_names(technique)) <= descriptions(technique).keys()
