"""The stability study: its statistics by hand, its plan, its synonym tables, and its models."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import ttest_1samp, ttest_ind

from contract.tiny import assert_close, batch, classifier, split
from steadygaze.data.substitutable_pairs import FUNCTION_WORDS, NEGATIONS
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models import inference
from steadygaze.study.seed_statistics import holm
from steadygaze.techniques import TECHNIQUES
from studies.held_out_synonyms import run as synonyms
from studies.stability import data, plan, probe, run, statistics, table
from studies.stability.comparison import (
    FIRST_SEEDS,
    compare_with_start,
    compare_with_vanilla,
    rows_of,
    with_first_seeds,
)
from studies.stability.ensemble import Ensemble
from studies.stability.flatness import tempered_log_ratio
from studies.stability.models import ModelOptions, without_groups
from studies.stability.plan import ModelGroup
from studies.stability.records import SELECTION, read, study_records
from studies.stability_coverage.run import coverage
from studies.study import STUDIES

# Statistics


def test_ratio_uses_one_denominator_per_setting_whatever_the_seeds() -> None:
    """Setting a: mean 2 over mean 4 of four vanilla seeds; b: 9 over 1.  √(½ · 9) = √4.5.

    Pairs by seed would give 1 / 1 and 3 / 3 in setting a, and the ratio 3.
    """
    vanilla = {"a": [1, 3, 5, 7], "b": [1, 1]}
    result = statistics.ratio({"a": [1, 3], "b": [9]}, vanilla)
    assert result.value == pytest.approx(4.5**0.5, abs=1e-12)


def test_difference_is_the_mean_over_settings_of_the_difference_of_means() -> None:
    """a: 2 − 4 = −2; b: 9 − 1 = 8."""
    result = statistics.difference({"a": [1, 3], "b": [9]}, {"a": [1, 3, 5, 7], "b": [1, 1]})
    assert result.value == pytest.approx(3, abs=1e-12)


def test_the_interval_and_p_of_a_difference_are_those_of_welch_s_test() -> None:
    """One setting: scipy's test.  A ratio: the delta method, var(ln x̄) = var(x) / (n x̄²)."""
    rng = np.random.default_rng(1)
    ours, plain = rng.normal(2, 0.5, 5), rng.normal(1.5, 0.2, 25)
    result, test = statistics.difference({"a": ours}, {"a": plain}), ttest_ind(ours, plain, equal_var=False)
    interval = test.confidence_interval()
    assert result == pytest.approx((ours.mean() - plain.mean(), interval.low, interval.high, test.pvalue))
    assert statistics.ratio({"a": [3.0] * 5}, {"a": [6.0] * 25}) == pytest.approx((0.5, 0.5, 0.5, 0.0))
    assert statistics.difference({"a": [3.0] * 5}, {"a": [3.0] * 25}).p == 1
    alone = statistics.ratio({"a": [3.0]}, {"a": [6.0] * 25})
    assert alone.value == pytest.approx(0.5)
    assert np.isnan(alone.low)


def test_the_interval_of_a_ratio_by_hand() -> None:
    """Technique 1 and 3: mean 2, variance of the mean 1, of its logarithm 1/4; vanilla is constant.

    One degree of freedom, whose 0.975 quantile is tan(0.475 π): ln 2 ± tan(0.475 π) / 2.
    """
    result = statistics.ratio({"a": [1.0, 3.0]}, {"a": [1.0, 1.0]})
    half = float(np.exp(np.tan(0.475 * np.pi) / 2))
    assert result[:3] == pytest.approx((2.0, 2 / half, 2 * half))
    assert result.p == pytest.approx(1 - 2 / np.pi * np.arctan(2 * np.log(2)))


def test_a_prediction_by_hand() -> None:
    """Ratios 1/2, 1/4, 1/8: mean −2 ln 2, standard deviation ln 2; t with 2 degrees is 4.3027, times √(4/3)."""
    plain = {s: [8.0, 8.0] for s in "abc"}
    result = statistics.prediction({"a": [4.0, 4.0], "b": [2.0, 2.0], "c": [1.0, 1.0]}, plain)
    half = 2 ** (4.302653 * (4 / 3) ** 0.5)
    assert result[:3] == pytest.approx((1 / 4, 1 / 4 / half, half / 4), rel=1e-6)


def test_a_prediction_is_not_narrower_than_the_variation_between_seeds() -> None:
    """Both data sets have the mean 2; its logarithm has the variance 1/4.  One degree: tan(0.475 π) · ½ · √1.5."""
    ours, plain = {s: [1.0, 3.0] for s in "ab"}, {s: [1.0, 1.0] for s in "ab"}
    half = float(np.exp(np.tan(0.475 * np.pi) / 2 * 1.5**0.5))
    assert statistics.prediction(ours, plain)[:3] == pytest.approx((2.0, 2 / half, 2 * half))


@pytest.mark.slow
def test_a_prediction_covers_another_data_set() -> None:
    """2,000 draws of three and one data sets whose logarithms of ratios are normal: 95 %."""
    rng, hits, one = np.random.default_rng(0), 0, {s: [1.0, 1.0] for s in "abc"}
    for _ in range(2000):
        *seen, new = np.exp(rng.normal(-1, 0.4, 4))
        result = statistics.prediction({s: [x, x] for s, x in zip("abc", seen, strict=True)}, one)
        hits += result.low <= new <= result.high
    assert 0.93 < hits / 2000 < 0.97


def test_paired_ratio_by_hand() -> None:
    """Logarithms of 2/1 and 8/1 in setting a: mean 2 ln 2, variance of the mean ln² 2; of 1/4 twice in b: −2 ln 2.

    Together 0, with a standard error of ½ ln 2 and one degree of freedom, whose 0.975 quantile is tan(0.475 π).
    """
    result = statistics.paired({"a": [2.0, 8.0], "b": [1.0, 1.0]}, {"a": [1.0, 1.0], "b": [4.0, 4.0]})
    half = float(np.tan(0.475 * np.pi)) / 2
    assert result[:3] == pytest.approx((1.0, 2**-half, 2**half))
    assert statistics.paired({"a": [3.0, 3.0]}, {"a": [6.0, 6.0]}) == pytest.approx((0.5, 0.5, 0.5, 0.0))


def test_paired_interval_is_student_s_and_welch_s() -> None:
    """One setting: the t interval of the mean.  Two: half of Welch's interval of mean(a) − mean(−b)."""
    rng = np.random.default_rng(1)
    a, b, plain = rng.normal(2, 0.5, 5), rng.normal(1, 2.0, 7), {"a": np.ones(5), "b": np.zeros(7)}
    test = ttest_1samp(a - 1, 0)
    interval = test.confidence_interval()
    result = statistics.paired_difference({"a": a}, plain)
    assert result == pytest.approx((np.mean(a - 1), interval.low, interval.high, test.pvalue))
    both = ttest_ind(a - 1, -b, equal_var=False).confidence_interval()
    result = statistics.paired_difference({"a": a, "b": b}, plain)
    assert (result.low, result.high) == pytest.approx((both.low / 2, both.high / 2))


def test_intervals_of_five_seeds_cover_the_truth() -> None:
    """Two settings of 25 models: 95 % of 400 trials; the percentile bootstrap covered 0.88."""
    rng = np.random.default_rng(3)
    population = {s: np.exp(rng.normal(0, 0.3, 25)) for s in "ab"}
    assert 0.92 < coverage(population, False, 400) < 0.98


# Plan


SELECTED = {"config": 1}
"""A configuration that no row has by default."""


def groups_of(**selected: dict[str, Any]) -> list[ModelGroup]:
    rows = [row for row in plan.GRID if row not in plan.BOTH_RULES]
    rows += [f"{row}-by-{rule}" for row in plan.BOTH_RULES for rule in ("f1", "rule")]
    return plan.row_groups({**{row: {**SELECTED, "row": row} for row in rows}, **selected})


def test_students_share_no_teacher() -> None:
    groups = {group.name: group for group in groups_of()}
    student = groups["test.hate-bilstm.consensus"]
    assert [teacher_seed for seed in range(5) for teacher_seed in student.teacher_seeds(seed)] == list(range(25))
    assert groups[f"test.hate-bilstm.{student.teachers}"].seeds == 25
    adversarial = groups["test.rt-bilstm.consensus-word-at"]
    assert (adversarial.teachers, adversarial.config["teacher"]) == ("word-at", "word-at")
    assert adversarial.teacher_seeds(4) == (20, 21, 22, 23, 24)
    grouped = groups["test.rt-bilstm.consensus-groups"]
    assert (grouped.teachers, grouped.config["teacher"]) == ("vanilla-groups", "vanilla")
    assert groups["test.rt-bilstm.anchored"].teacher_seeds(3) == (3,)


@pytest.mark.parametrize("groups", [groups_of(), plan.selection_groups()], ids=["test", "selection"])
def test_every_job_that_another_needs_is_planned_before_it_in_its_setting(groups: list[ModelGroup]) -> None:
    jobs = plan.jobs_of(groups)
    places = {job.id: place for place, job in enumerate(jobs)}
    assert len(places) == len(jobs)
    for job in jobs:
        assert all(places[name] < places[job.id] for name in job.needs()), job.id
        assert {name.split(".")[1] for name in job.needs()} <= {job.setting}


def test_jobs_need_the_models_that_they_read() -> None:
    jobs = {job.id: job.needs() for job in plan.jobs_of(groups_of())}
    assert jobs["test.sst2-bilstm.consensus"] == ("test.sst2-bilstm.vanilla",)
    assert jobs["test.sst2-bilstm.synonym-augmentation"] == ()
    assert "test.sst2-bilstm.ensemble" not in jobs, "it is not trained"
    teachers = tuple(f"test.sst2-bilstm.vanilla.s{seed}" for seed in range(5, 10))
    assert jobs["test.sst2-bilstm.ensemble.s1"] == ("test.sst2-bilstm.vanilla", *teachers)
    assert jobs["test.sst2-bilstm.synonym-augmentation.s1"] == (
        "test.sst2-bilstm.synonym-augmentation",
        "test.sst2-bilstm.vanilla.s1",
    )
    assert "test.sst2-bilstm.vanilla" in jobs["test.sst2-bilstm.vanilla-groups.s0"]


def test_only_matching_rows_run_with_what_they_depend_on() -> None:
    jobs = plan.with_needs(plan.jobs_of(groups_of()), r"rt-.*\.anchored(\.|$)")
    names = {job.id.removeprefix("test.rt-bilstm.") for job in jobs}
    fives = {f"{row}.s{seed}" for row in ("vanilla", "anchored") for seed in range(5)}
    assert names == {"vanilla", "anchored", "seeds.rt-bilstm.anchored", *fives}


def test_selection_takes_the_smallest_shift_within_the_margin_or_the_best_f1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vanilla 0.80; three configurations of 0.85, 0.796, 0.79 shift by 3, 2, 1: the rule takes the second."""
    grid = [{"epsilon": e} for e in (1, 2, 3)]
    monkeypatch.setattr(run, "GRID", {"word-at": grid, "anchored": grid})
    scores = {None: (0.80, 9.0), 0: (0.85, 3.0), 1: (0.796, 2.0), 2: (0.79, 1.0)}
    records = []
    for row in ("word-at", "anchored"):
        for config, (f1, shift) in scores.items():
            named = {"row": "vanilla"} if config is None else {"row": row, "config": grid[config]}
            shifts = {f"jensen-shannon/{probe}": shift for probe in plan.SELECTION_PROBES}
            records += [{"phase": "select", "macro-f1": f1 + spread, **named, **shifts} for spread in (-0.02, 0.02)]
    assert run.select_configurations(records) == {
        "word-at-by-f1": {"epsilon": 1},
        "word-at-by-rule": {"epsilon": 2},
        "anchored": {"epsilon": 2},
    }


def test_rows_of_one_configuration_share_their_models(tmp_path: Path) -> None:
    """word-at by F1 has the default ε, and both rules select the same ε of attention-at."""
    same = {"word-at-by-f1": {"epsilon": 0.2}, "attention-at-by-f1": SELECTED, "attention-at-by-rule": SELECTED}
    groups = {group.name: group for group in groups_of(**same)}
    assert groups["test.rt-bilstm.word-at-by-f1"].source == "word-at"
    assert groups["test.rt-bilstm.word-at-by-rule"].source == ""
    assert groups["test.rt-bilstm.attention-at-by-rule"].source == "attention-at-by-f1"
    jobs = {job.id: job for job in plan.jobs_of([groups["test.rt-bilstm.word-at-by-f1"]])}
    assert "test.rt-bilstm.word-at-by-f1" not in jobs, "it is not trained"
    job, source = jobs["test.rt-bilstm.word-at-by-f1.s4"], "test.rt-bilstm.word-at.s4"
    assert job.needs() == (source,)
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / f"{source}.json").write_text('{"macro-f1": 0.4}')
    study = ModelOptions(out=tmp_path, glove=Path(), synonyms=Path())
    assert run.run_one(study, job) == {"macro-f1": 0.4, "same-as": source}


def test_no_two_points_of_a_grid_are_the_same_configuration() -> None:
    for row, grid in plan.GRID.items():
        technique = TECHNIQUES[plan.ModelGroup("select", "sst2-bilstm", row).technique]
        assert len({technique(**point) for point in grid}) == len(grid), row


# Synonym tables


def test_held_out_pairs_are_never_training_pairs_in_either_order() -> None:
    words = [f"word{chr(97 + i)}{chr(97 + j)}" for i in range(8) for j in range(8)]
    table = {word: [other for other in words if other != word] for word in words}
    training, held_out = synonyms.split(table)
    pairs = [{synonyms.pair(w, o) for w, others in t.items() for o in others} for t in (training, held_out)]
    assert pairs[0].isdisjoint(pairs[1])
    assert len(pairs[0] | pairs[1]) == 64 * 63 / 2
    assert len(pairs[1]) == pytest.approx(64 * 63 / 6, rel=0.1)


def test_function_words_and_negations_are_on_no_side_of_a_pair() -> None:
    table = {"good": ["fine", "not", "the"], "never": ["rarely"], "movie": ["film", "movie", "b-movie"]}
    assert synonyms.content(table) == {"good": ["fine"], "movie": ["film"]}
    assert synonyms.FUNCTION_WORDS is FUNCTION_WORDS, "one list for the study and the package"
    assert probe.NEGATIONS is NEGATIONS


def test_wordnet_files_are_read_by_first_sense_and_commonest_part_of_speech(tmp_path: Path) -> None:
    """film: noun, tagged 5 times, as verb once.  movie shares its first noun sense, pic a later one of its own."""
    license_text = "  1 This software and database\n"
    index = {
        "noun": "film n 1 0 1 1 00000001\nmovie n 1 0 1 1 00000001\npic n 2 0 2 1 00000002 00000001\n"
        "films n 1 0 1 1 00000001\n",
        "verb": "film v 1 0 1 1 00000003\nshoot v 1 0 1 1 00000003\n",
    }
    data = {
        "noun": "00000001 10 n 04 pic 0 film 0 movie 0 moving_picture 0 000 | a form\n00000002 10 n 01 pic 0 000 | x\n",
        "verb": "00000003 36 v 02 film 0 shoot 0 000 | make a film\n",
    }
    for part in synonyms.PARTS:
        (tmp_path / f"index.{part}").write_text(license_text + index.get(part, ""))
        (tmp_path / f"data.{part}").write_text(license_text + data.get(part, ""))
        (tmp_path / f"{part}.exc").write_text("")
    (tmp_path / "cntlist.rev").write_text("film%1:10:00:: 1 5\nfilm%2:36:00:: 1 1\n")
    result = synonyms.read_wordnet(tmp_path)
    assert result == {"film": ["movie", "pic"], "movie": ["film", "pic"], "shoot": ["film"]}
    assert synonyms.without(result, {"movie": ["film"]})["film"] == ["pic"]


# Ensemble


def test_an_ensemble_is_the_mean_of_its_members_and_shares_a_perturbation() -> None:
    members = [classifier("bilstm"), classifier("bilstm")]
    with torch.no_grad():
        for parameter in members[1].parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    texts = batch(split())
    ensemble = Ensemble(members)
    output, each = ensemble(texts), [member(texts) for member in members]
    assert_close(output.weights, (each[0].weights + each[1].weights) / 2)
    assert_close(output.logits.softmax(-1), (each[0].logits.softmax(-1) + each[1].logits.softmax(-1)) / 2)
    shift = 0.1 * torch.randn_like(ensemble.embed(texts))
    moved = ensemble(texts, ensemble.embed(texts) + shift)
    expected = [member(texts, member.embed(texts) + shift).weights for member in members]
    assert_close(moved.weights, (expected[0] + expected[1]) / 2)


# Synonym groups


def test_a_model_with_groups_is_probed_with_the_ids_of_a_model_without() -> None:
    """The outputs of the texts are equal, and a substitution inside a group changes no output."""
    texts = ["a good film .", "a fine movie of 3 parts", "an odd picture , unknown words", "good good dull film"] * 6
    labels = ["yes"] * 12 + ["no"] * 12
    groups = SynonymGroups((("movie", "film", "picture"), ("good", "fine")))
    small = {"hidden": 4, "dimension": 4, "small_data": False}
    fitted = [
        TextClassifier(settings=small, epochs=1, synonym_groups=source, device="cpu", verbose=False).fit(texts, labels)
        for source in (groups, None)
    ]
    grouped, plain = (clf.stored_ for clf in fitted)
    before = inference.split_outputs(grouped.model, grouped.data(texts[:4], None))
    probed = without_groups(grouped, plain.tokenizer.vocabulary)
    inputs = probed.data(texts[:4], None)
    after = inference.split_outputs(probed.model, inputs)
    assert torch.equal(after.weights, before.weights)
    assert torch.equal(after.logits, before.logits)
    assert probed.tokenizer.vocabulary[: plain.tokenizer.size] == plain.tokenizer.vocabulary
    same = plain.data(texts[:4], None).text.ids == inputs.text.ids
    assert same.mean() > 0.8, "the ids of words that both know"
    other = probed.data(["a fine picture ."], None)
    ids, other_ids = (torch.from_numpy(part.text.ids[: len(other.text.ids)]).long() for part in (inputs, other))
    assert not torch.equal(other_ids, ids)
    assert torch.equal(probed.model.encoder.embed(other_ids[None]), probed.model.encoder.embed(ids[None]))
    rewritten = inference.split_outputs(probed.model, other).weights[0]  # of another batch: see the contract of results
    torch.testing.assert_close(rewritten, after.weights[0, : len(rewritten)], rtol=0, atol=1e-5)


# Records


def test_the_records_have_every_planned_model_once() -> None:
    groups = plan.row_groups(run.select_configurations(read(SELECTION)))
    planned = {(group.setting, group.row, seed) for group in groups for seed in range(group.seeds)}
    models = [(r["setting"], r["row"], r["seed"]) for r in study_records() if r["phase"] == "test"]
    assert len(models) == len(set(models)) == 825
    assert set(models) == planned


def test_records_of_a_new_run_are_read_as_those_of_the_repository(tmp_path: Path) -> None:
    """Jobs of training are left out, and comparisons of seeds are a phase of their own."""
    for kind in ("train", "measure", "seeds"):
        (tmp_path / f"{kind}.json").write_text(f'{{"phase": "test", "kind": "{kind}", "row": "vanilla"}}')
    assert [(record["kind"], record["phase"]) for record in read(tmp_path)] == [("measure", "test"), ("seeds", "seeds")]


def test_seed_effects_have_a_row_and_cancel_against_the_own_start() -> None:
    """`seat` (`paper`) changes nothing: its ratio is that of its five vanilla models, and 1 against its own start."""
    rows, key = with_first_seeds(rows_of(study_records())), "jensen-shannon/3-synonyms"
    first, seat = (
        compare_with_vanilla(statistics.ratio, rows, row, key, ["sst2-bilstm"])
        for row in (FIRST_SEEDS, "seat-paper-kl")
    )
    assert first is not None
    assert seat is not None
    assert seat.value == pytest.approx(first.value, rel=1e-3) != pytest.approx(1, rel=0.05)
    own = compare_with_start(statistics.paired, rows, "seat-paper-kl", key, ["sst2-bilstm"])
    assert own is not None
    assert own[:3] == pytest.approx((1, 1, 1), abs=1e-3)


# Numbers


def test_flatness_of_a_model_that_starts_from_vanilla_is_measured_from_its_start() -> None:
    """Scores / 2 is a point of the curve: flatness alone explains all of it."""
    rows, key, row, setting = rows_of(study_records()), "jensen-shannon/noise", "tempered-2.0", "rt-bilstm"
    own = compare_with_start(statistics.paired, rows, row, key, [setting])
    assert own is not None
    assert np.exp(tempered_log_ratio(rows, row, setting, key)) == pytest.approx(own.value)


def test_hate_outside_its_prediction_intervals_is_counted() -> None:
    numbers, outside = STUDIES["stability"].numbers, []
    for row, kind, words in product(table.TECHNIQUES, table.KINDS, table.SUBSTITUTES):
        low, high = numbers[f"prediction.{row}.{kind}.{words}"].interval or (0, 0)
        outside.append(not low <= float(numbers[f"hate.{row}.{kind}.{words}"]) <= high)
    counts = [numbers[f"hate-and-predictions.{name}"].value for name in ("outside", "all")]
    assert counts == [sum(outside), len(outside)]


def test_comparisons_of_a_data_set_are_corrected_for_their_number() -> None:
    """Two techniques and two measures, so that each p is multiplied by up to 4."""
    rng, measures = np.random.default_rng(0), ("macro-f1", "normalized-entropy")

    def models(shift: float) -> dict[str, dict[int, dict[str, float]]]:
        return {"a": {seed: {m: shift + rng.normal() for m in measures} for seed in range(5)}}

    rows: Any = {"vanilla": models(0), "x": models(1), "y": models(2)}
    lines = list(data.compared(rows, "a", ["a"], False, ["vanilla", "x", "y"], measures))
    p = [
        ttest_ind(*([run[m] for run in rows[row]["a"].values()] for row in (name, "vanilla")), equal_var=False).pvalue
        for name in ("x", "y")
        for m in measures
    ]
    assert [(line[1], line[3]) for line in lines] == [(row, m) for row in ("x", "y") for m in measures]
    assert [float(line[-2]) for line in lines] == pytest.approx(holm(p), rel=1e-3)
    assert max(np.divide(holm(p), p)) == pytest.approx(4)
