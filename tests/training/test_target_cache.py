"""Cached targets equal computed targets in any batch; epoch tables are updated every epoch."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from contract.tiny import TEXTS, batch, classifier, split, widened
from steadygaze.core.settings import settings
from steadygaze.core.types import Batch, Terms
from steadygaze.data.batches import collate
from steadygaze.models.classifier import Classifier
from steadygaze.perturbations.word_substitution import Synonyms
from steadygaze.techniques.technique import CachedTargets, LossContext, Technique
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training import teacher_cache as remembering
from steadygaze.training.teacher_cache import TargetCache, cache_targets
from training.toys import TRAINED_TEXTS as ROWS
from training.toys import WORDS, Distil, Recorder, corpus, make_model, make_run, outcome, watched

CPU = torch.device("cpu")
ROUNDING = {"rtol": 0, "atol": 1e-12}  # float64
DATA = split([TEXTS[i % len(TEXTS)] for i in range(17)])
TOKENS = sum(len(TEXTS[i % len(TEXTS)]) for i in range(17))


def facts(batch: Batch) -> CachedTargets:
    """Of ids and rows alone, so that what comes back can be compared exactly: every shape and kind of number."""
    place = torch.arange(batch.ids.shape[1]).expand_as(batch.ids)
    texts = {"row": batch.index, "pair": torch.stack([batch.index, -batch.index], -1).double()}
    wide = torch.stack([batch.ids, place], -1)[..., None].float() + batch.index.view(-1, 1, 1, 1)
    tokens = {"id": 100 * place + batch.ids, "word": batch.mask, "wide": wide}  # (B,T), (B,T), (B,T,2,1)
    return CachedTargets(texts, {name: _blank(value, batch) for name, value in tokens.items()})


def _blank(value: Tensor, batch: Batch) -> Tensor:
    absent = ~batch.present
    return value.masked_fill(absent.view(*absent.shape, *[1] * (value.ndim - 2)), 0)


@settings
class Facts(Vanilla):
    def cache_targets(self, models: Mapping[str, Classifier], batch: Batch) -> CachedTargets:
        return facts(batch)


@settings
class Recall(Distil):
    """Distil that looks up the output of its teacher, and computes it if it is not cached."""

    def cache_targets(self, models: Mapping[str, Classifier], batch: Batch) -> CachedTargets:
        if not models:  # no model has been trained yet
            return CachedTargets()
        out = models["teacher"](batch)
        return CachedTargets({"logits": out.logits}, {"weights": out.weights, "hidden": out.encoded.hidden})

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        if "weights" not in context.cached_targets.tokens:
            return super().loss(model, batch, context)
        distance = (model(batch).weights - context.cached_targets.tokens["weights"]).square().sum(-1)
        return {**Vanilla().loss(model, batch, context), "apart": self.strength * distance}


def same(actual: CachedTargets, expected: CachedTargets) -> bool:
    ours, theirs = ({**memory.texts, **memory.tokens} for memory in (actual, expected))
    return ours.keys() == theirs.keys() and all(
        ours[name].dtype == theirs[name].dtype and ours[name].equal(theirs[name]) for name in ours
    )


@given(st.lists(st.integers(0, 16), min_size=1, max_size=20), st.integers(0, 5))
def test_what_is_remembered_is_what_is_computed_for_any_batch_of_any_width(rows: list[int], extra: int) -> None:
    store = cache_targets(Facts(), {}, DATA, CPU)
    wanted = widened(batch(DATA, rows), extra)
    assert same(store.get(wanted), facts(wanted))


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_store_may_be_filled_in_batches_of_any_size_and_order(size: int) -> None:
    store, order = TargetCache(DATA, CPU), np.random.default_rng(0).permutation(17)
    for start in range(0, 17, size):
        some = widened(batch(DATA, list(order[start : start + size])), start % 4)
        store.put(some, facts(some))
    assert same(store.get(batch(DATA)), facts(batch(DATA)))


def test_padding_is_zero_even_where_the_technique_left_something_there() -> None:
    store, whole = TargetCache(DATA, CPU), batch(DATA)
    ones = torch.ones(*whole.ids.shape, 2)
    store.put(whole, CachedTargets(tokens={"ones": ones}))
    result = store.get(widened(whole, 3)).tokens["ones"]
    present = widened(whole, 3).present
    assert (result[present] == 1).all()
    assert (result[~present] == 0).all()
    assert (~present).any()


@pytest.mark.parametrize("extra", [0, 4])
def test_the_cached_output_of_a_finished_model_equals_its_output(extra: int) -> None:
    teacher = classifier()
    store = cache_targets(Recall(), {"teacher": teacher}, DATA, CPU)
    for rows in ([0], [16, 3, 3, 5], list(range(17))):
        wanted = widened(batch(DATA, rows), extra)
        with torch.no_grad():
            expected = Recall().cache_targets({"teacher": teacher}, wanted)
        result = store.get(wanted)
        torch.testing.assert_close(result.texts["logits"], expected.texts["logits"], **ROUNDING)
        torch.testing.assert_close(result.tokens["weights"], expected.tokens["weights"], **ROUNDING)
        hidden = expected.tokens["hidden"].masked_fill(~wanted.present.unsqueeze(-1), 0.0)
        torch.testing.assert_close(result.tokens["hidden"], hidden, **ROUNDING)


def test_what_is_too_large_is_left_out_and_what_just_fits_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Per token `id` takes 8 bytes, `word` 1, `wide` 2·4 = 8; what belongs to texts is always kept."""
    whole = batch(DATA)
    for room, names in ((8 * TOKENS, {"id", "word", "wide"}), (8 * TOKENS - 1, {"word"}), (0, set())):
        monkeypatch.setattr(remembering, "ROOM", room)
        result = cache_targets(Facts(), {}, DATA, CPU).get(whole)
        assert set(result.tokens) == names
        assert same(result, CachedTargets(facts(whole).texts, {name: facts(whole).tokens[name] for name in names}))


def test_a_technique_that_remembers_nothing_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("the texts were read")

    monkeypatch.setattr(remembering, "by_length", never)
    monkeypatch.setattr(TargetCache, "positions", never)
    store = cache_targets(Distil(), {"teacher": classifier()}, DATA, CPU)
    assert store.get(batch(DATA)) == CachedTargets()


def test_every_text_is_evaluated_once_in_evaluation_mode_without_gradients_and_modes_are_restored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []
    teacher = classifier().train()

    @settings
    class CountedRecall(Recall):
        def cache_targets(self, models: Mapping[str, Classifier], batch: Batch) -> CachedTargets:
            calls.extend(batch.index.tolist())
            assert not any(module.training for module in models["teacher"].modules())
            assert not torch.is_grad_enabled()
            return super().cache_targets(models, batch)

    monkeypatch.setattr(remembering, "BATCH", 4)
    store = cache_targets(CountedRecall(), {"teacher": teacher}, DATA, CPU)
    assert sorted(calls) == list(range(17))
    assert all(module.training for module in teacher.modules())
    result = store.get(batch(DATA))
    assert not any(value.requires_grad for value in (*result.texts.values(), *result.tokens.values()))


def test_each_step_is_handed_what_its_batch_has_in_memory_and_only_in_the_stage_that_remembers() -> None:
    seen: list[str] = []

    def look(technique: Technique, model: Classifier, batch: Batch, context: LossContext) -> None:
        aim = context.models["teacher"](batch)
        torch.testing.assert_close(context.cached_targets.tokens["weights"], aim.weights, **ROUNDING)
        torch.testing.assert_close(context.cached_targets.texts["logits"], aim.logits, **ROUNDING)
        seen.append("learn")

    make_run(watched(Recall, look), lambda: make_model(dtype=torch.float64, dropout=0.0)).execute()
    assert len(seen) == 6


def test_training_with_memory_is_training_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def terms(room: int) -> list[Tensor]:
        monkeypatch.setattr(remembering, "ROOM", room)
        recorder = Recorder()
        make_run(Recall(), lambda: make_model(dtype=torch.float64), watcher=recorder).execute()
        return [torch.cat(list(step.values())) for step in recorder.steps]

    for kept, anew in zip(terms(1 << 30), terms(0), strict=True):
        torch.testing.assert_close(kept, anew, rtol=0, atol=1e-9)  # 24 steps of Adam enlarge what rounding began


def test_a_run_that_remembers_repeats_bit_for_bit() -> None:
    assert outcome(make_run(Recall())) == outcome(make_run(Recall()))


def test_tables_are_made_once_an_epoch_from_the_model_as_it_stands_and_handed_to_every_step() -> None:
    made: list[tuple[bytes, Synonyms | None]] = []
    seen: list[tuple[float, int]] = []
    synonyms = Synonyms(torch.zeros(WORDS, 1).long(), torch.zeros(WORDS).long(), torch.zeros(WORDS).bool())

    @settings
    class Fresh(Vanilla):
        def on_epoch_start(self, model: Classifier, synonyms: Synonyms | None) -> Mapping[str, Tensor]:
            made.append((model.encoder.embedding.weight.detach().numpy().tobytes(), synonyms))
            return {"count": torch.tensor(len(made))}

        def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
            assert context.synonyms is synonyms
            now = model.encoder.embedding.weight.detach().numpy().tobytes()
            seen.append((int(context.epoch_tables["count"]), now == made[-1][0]))
            return super().loss(model, batch, context)

    run = make_run(Fresh())
    run.job = dataclasses.replace(run.job, synonyms=synonyms)
    run.execute()
    assert [table for table, _ in seen] == [1] * 3 + [2] * 3
    assert [same for _, same in seen] == ([True] + [False] * 2) * 2  # as the epoch found it, then outrun
    assert all(handed is synonyms for _, handed in made)


def test_a_job_without_synonyms_hands_over_none() -> None:
    seen: list[Synonyms | None] = []
    make_run(watched(Vanilla, lambda *inputs: seen.append(inputs[-1].synonyms)), epochs=1).execute()
    assert seen == [None] * 3


def test_random_numbers_differ_in_every_step_and_belong_to_each_text() -> None:
    drawn: dict[int, list[float]] = {}
    keys: list[int] = []

    def draw(technique: Technique, model: Classifier, batch: Batch, context: LossContext) -> None:
        keys.append(context.key.key)
        alone = collate(corpus(), batch.index[:1].numpy())
        numbers = context.key.uniform(batch.index, 1)
        assert torch.equal(context.key.uniform(alone.index, 1), numbers[:1])
        for row, value in zip(batch.index.tolist(), numbers.flatten().tolist(), strict=True):
            drawn.setdefault(row, []).append(value)

    make_run(watched(Vanilla, draw)).execute()
    assert len(set(keys)) == 6
    assert sorted(drawn) == list(range(ROWS))
    assert len({value for values in drawn.values() for value in values}) == 2 * ROWS
