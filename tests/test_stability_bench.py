"""The stability study in bench/: its statistics by hand, its plan, its synonym tables, and that a run resumes."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from contract.tiny import assert_close, batch, classifier, split
from steadygaze.data.substitutable_pairs import FUNCTION_WORDS, NEGATIONS
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models import inference

ROOT = Path(__file__).parents[1]
BENCH = ROOT / "bench"
MODULES = ("plan", "statistics", "synonyms", "records", "table", "page", "text", "ensemble", "coverage", "models")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(BENCH))
    before = set(sys.modules)
    results = {name: import_module(f"stability_{name}") for name in MODULES}
    yield SimpleNamespace(study=import_module("stability"), **results)
    for name in set(sys.modules) - before:
        if str(BENCH) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


# Statistics


def test_ratio_uses_one_denominator_per_setting_whatever_the_seeds(bench: Any) -> None:
    """Setting a: mean 2 over mean 4 of four vanilla seeds; b: 9 over 1.  √(½ · 9) = √4.5.

    Pairs by seed would give 1 / 1 and 3 / 3 in setting a, and the ratio 3.
    """
    vanilla = {"a": [1, 3, 5, 7], "b": [1, 1]}
    result = bench.statistics.ratio({"a": [1, 3], "b": [9]}, vanilla)
    assert result.value == pytest.approx(4.5**0.5, abs=1e-12)


def test_difference_is_the_mean_over_settings_of_the_difference_of_means(bench: Any) -> None:
    """a: 2 − 4 = −2; b: 9 − 1 = 8."""
    result = bench.statistics.difference({"a": [1, 3], "b": [9]}, {"a": [1, 3, 5, 7], "b": [1, 1]})
    assert result.value == pytest.approx(3, abs=1e-12)


def test_interval_is_of_seeds_of_both(bench: Any) -> None:
    """Seeds 0 and 2 have means 0, 1, 2 with probabilities ¼, ½, ¼; vanilla is −1 or 1: the ends are 3 and −1."""
    result = bench.statistics.difference({"a": [0.0, 2.0]}, {"a": [-1.0, 1.0]})
    assert result == pytest.approx((1.0, -1.0, 3.0))  # (2, −1) and (0, 1) have a probability of 1/16 each: over 2.5 %
    alone = bench.statistics.difference({"a": [0.0, 2.0]}, {"a": [0.0, 0.0]})
    assert alone == pytest.approx((1.0, 0.0, 2.0))
    constant = bench.statistics.ratio({"a": [3.0] * 5}, {"a": [6.0] * 25})
    assert constant == pytest.approx((0.5, 0.5, 0.5))


def test_interval_agrees_with_an_independent_bootstrap(bench: Any) -> None:
    from scipy.stats import bootstrap

    rng = np.random.default_rng(1)
    ours, plain = rng.normal(2, 0.5, 12), rng.normal(1, 0.5, 25)
    result = bench.statistics.difference({"a": ours}, {"a": plain})
    other = bootstrap(
        (ours, plain),
        lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
        n_resamples=4000,
        method="percentile",
        rng=np.random.default_rng(2),
    ).confidence_interval
    assert (result.low, result.high) == pytest.approx((other.low, other.high), abs=0.03)


def test_paired_ratio_by_hand(bench: Any) -> None:
    """Logarithms of 2/1 and 8/1 in setting a: mean 2 ln 2, variance of the mean ln² 2; of 1/4 twice in b: −2 ln 2.

    Together 0, with a standard error of ½ ln 2 and one degree of freedom, whose 0.975 quantile is tan(0.475 π).
    """
    result = bench.statistics.paired({"a": [2.0, 8.0], "b": [1.0, 1.0]}, {"a": [1.0, 1.0], "b": [4.0, 4.0]})
    half = float(np.tan(0.475 * np.pi)) / 2
    assert result == pytest.approx((1.0, 2**-half, 2**half))
    assert bench.statistics.paired({"a": [3.0, 3.0]}, {"a": [6.0, 6.0]}) == pytest.approx((0.5, 0.5, 0.5))


def test_paired_interval_is_student_s_and_welch_s(bench: Any) -> None:
    """One setting: the t interval of the mean.  Two: half of Welch's interval of mean(a) − mean(−b)."""
    from scipy.stats import ttest_1samp, ttest_ind

    rng = np.random.default_rng(1)
    a, b, plain = rng.normal(2, 0.5, 5), rng.normal(1, 2.0, 7), {"a": np.ones(5), "b": np.zeros(7)}
    interval = ttest_1samp(a - 1, 0).confidence_interval()
    result = bench.statistics.paired_difference({"a": a}, plain)
    assert result == pytest.approx((np.mean(a - 1), interval.low, interval.high))
    both = ttest_ind(a - 1, -b, equal_var=False).confidence_interval()
    result = bench.statistics.paired_difference({"a": a, "b": b}, plain)
    assert (result.low, result.high) == pytest.approx((both.low / 2, both.high / 2))


def test_the_bootstrap_covers_less_than_the_t_interval(bench: Any) -> None:
    population = {"a": np.exp(np.random.default_rng(3).normal(0, 0.5, 25))}
    bootstrap, t = bench.coverage.coverage(population, False, 200)
    assert 0.6 < bootstrap < t <= 1


# Plan


SELECTED = {"config": 1}
"""A configuration that no row has by default."""


def groups_of(bench: Any, **selected: dict[str, Any]) -> list[Any]:
    rows = [row for row in bench.plan.GRID if row not in bench.plan.BOTH_RULES]
    rows += [f"{row}-by-{rule}" for row in bench.plan.BOTH_RULES for rule in ("f1", "rule")]
    return bench.plan.row_groups({**{row: {**SELECTED, "row": row} for row in rows}, **selected})  # type: ignore[no-any-return]


def test_students_share_no_teacher(bench: Any) -> None:
    groups = {group.id: group for group in groups_of(bench)}
    student = groups["test.hate-bilstm.consensus"]
    assert [teacher_seed for seed in range(5) for teacher_seed in student.teacher_seeds(seed)] == list(range(25))
    assert groups[f"test.hate-bilstm.{student.teachers}"].seeds == 25
    adversarial = groups["test.rt-bilstm.consensus-word-at"]
    assert (adversarial.teachers, adversarial.config["teacher"]) == ("word-at", "word-at")
    assert adversarial.teacher_seeds(4) == (20, 21, 22, 23, 24)
    grouped = groups["test.rt-bilstm.consensus-groups"]
    assert (grouped.teachers, grouped.config["teacher"]) == ("vanilla-groups", "vanilla")
    assert groups["test.rt-bilstm.anchored"].teacher_seeds(3) == (3,)


def cells_of(bench: Any, monkeypatch: pytest.MonkeyPatch, groups: list[Any]) -> dict[str, list[Any]]:
    monkeypatch.setattr(bench.study, "inputs", lambda _: {"code": "1"})
    monkeypatch.setattr(bench.study, "_data", lambda *_: {})
    return bench.study.cells(bench.models.Study(*[Path()] * 4), groups)  # type: ignore[no-any-return]


def test_every_cell_that_another_needs_is_planned_before_it_in_its_setting(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for groups in (groups_of(bench), bench.plan.selection_groups()):
        cells = [cell for group in cells_of(bench, monkeypatch, groups).values() for cell in group]
        places = {cell.name: place for place, cell in enumerate(cells)}
        assert len(places) == len(cells)
        for cell in cells:
            assert all(places[name] < places[cell.name] for name in cell.needs), cell.name
            assert {name.split(".")[1] for name in cell.needs} <= {cell.name.split(".")[1]}


def test_cells_need_the_models_that_they_read(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = {c.name: c for group in cells_of(bench, monkeypatch, groups_of(bench)).values() for c in group}
    assert cells["test.sst2-bilstm.consensus"].needs == ("test.sst2-bilstm.vanilla",)
    assert cells["test.sst2-bilstm.synonym-augmentation"].needs == ()
    assert "test.sst2-bilstm.ensemble" not in cells, "it is not trained"
    teachers = tuple(f"test.sst2-bilstm.vanilla.s{seed}" for seed in range(5, 10))
    assert cells["test.sst2-bilstm.ensemble.s1"].needs == ("test.sst2-bilstm.vanilla", *teachers)
    assert cells["test.sst2-bilstm.synonym-augmentation.s1"].needs == (
        "test.sst2-bilstm.synonym-augmentation",
        "test.sst2-bilstm.vanilla.s1",
    )
    assert "test.sst2-bilstm.vanilla" in cells["test.sst2-bilstm.vanilla-groups.s0"].needs


def test_only_matching_rows_run_with_what_they_depend_on(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = cells_of(bench, monkeypatch, groups_of(bench))
    names = {
        cell.name.removeprefix("test.rt-bilstm.") for cell in bench.study.matching_cells(cells, r"rt-.*\.anchored$")
    }
    fives = {f"{row}.s{seed}" for row in ("vanilla", "anchored") for seed in range(5)}
    assert names == {"vanilla", "anchored", "seeds.rt-bilstm.anchored", *fives}


def test_selection_takes_the_smallest_shift_within_the_margin_or_the_best_f1(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vanilla 0.80; three configurations of 0.85, 0.796, 0.79 shift by 3, 2, 1: the rule takes the second."""
    grid = [{"epsilon": e} for e in (1, 2, 3)]
    monkeypatch.setattr(bench.study, "GRID", {"word-at": grid, "anchored": grid})
    scores = {None: (0.80, 9.0), 0: (0.85, 3.0), 1: (0.796, 2.0), 2: (0.79, 1.0)}
    records = []
    for row in ("word-at", "anchored"):
        for config, (f1, shift) in scores.items():
            named = {"row": "vanilla"} if config is None else {"row": row, "config": grid[config]}
            shifts = {f"jensen-shannon/{probe}": shift for probe in bench.plan.SELECTION_PROBES}
            records += [{"phase": "select", "macro-f1": f1 + spread, **named, **shifts} for spread in (-0.02, 0.02)]
    assert bench.study.select_configurations(records) == {
        "word-at-by-f1": {"epsilon": 1},
        "word-at-by-rule": {"epsilon": 2},
        "anchored": {"epsilon": 2},
    }


def test_rows_of_one_configuration_share_their_models(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """word-at by F1 has the default ε, and both rules select the same ε of attention-at."""
    same = {"word-at-by-f1": {"epsilon": 0.2}, "attention-at-by-f1": SELECTED, "attention-at-by-rule": SELECTED}
    groups = {group.id: group for group in groups_of(bench, **same)}
    assert groups["test.rt-bilstm.word-at-by-f1"].source == "word-at"
    assert groups["test.rt-bilstm.word-at-by-rule"].source == ""
    assert groups["test.rt-bilstm.attention-at-by-rule"].source == "attention-at-by-f1"
    row = groups["test.rt-bilstm.word-at-by-f1"]
    names = [cell.name for cell in cells_of(bench, monkeypatch, [groups["test.rt-bilstm.word-at"], row])[row.id]]
    assert names == ["seeds.rt-bilstm.word-at-by-f1"]
    results = {f"test.rt-bilstm.word-at.s{seed}": {"macro-f1": seed / 10} for seed in range(25)}
    records = bench.study.records_of([row], {**results, names[0]: {"models": 5}})
    assert [(r["id"], r.get("macro-f1"), r.get("same-as")) for r in records[-2:]] == [
        ("test.rt-bilstm.word-at-by-f1.s4", 0.4, "test.rt-bilstm.word-at.s4"),
        ("seeds.rt-bilstm.word-at-by-f1.s0", None, None),
    ]


def test_no_two_points_of_a_grid_are_the_same_configuration(bench: Any) -> None:
    from steadygaze.techniques import TECHNIQUES

    for row, grid in bench.plan.GRID.items():
        technique = TECHNIQUES[bench.plan.ModelGroup("select", "sst2-bilstm", row).technique]
        assert len({technique(**point) for point in grid}) == len(grid), row


# Synonym tables


def test_held_out_pairs_are_never_training_pairs_in_either_order(bench: Any) -> None:
    words = [f"word{chr(97 + i)}{chr(97 + j)}" for i in range(8) for j in range(8)]
    table = {word: [other for other in words if other != word] for word in words}
    training, held_out = bench.synonyms.split(table)
    pairs = [{bench.synonyms.pair(w, o) for w, others in t.items() for o in others} for t in (training, held_out)]
    assert pairs[0].isdisjoint(pairs[1])
    assert len(pairs[0] | pairs[1]) == 64 * 63 / 2
    assert len(pairs[1]) == pytest.approx(64 * 63 / 6, rel=0.1)


def test_function_words_and_negations_are_on_no_side_of_a_pair(bench: Any) -> None:
    table = {"good": ["fine", "not", "the"], "never": ["rarely"], "movie": ["film", "movie", "b-movie"]}
    assert bench.synonyms.content(table) == {"good": ["fine"], "movie": ["film"]}
    assert bench.synonyms.FUNCTION_WORDS is FUNCTION_WORDS, "one list for the study and the package"
    assert import_module("stability_probe").NEGATIONS is NEGATIONS


def test_wordnet_files_are_read_by_first_sense_and_commonest_part_of_speech(bench: Any, tmp_path: Path) -> None:
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
    for part in bench.synonyms.PARTS:
        (tmp_path / f"index.{part}").write_text(license_text + index.get(part, ""))
        (tmp_path / f"data.{part}").write_text(license_text + data.get(part, ""))
        (tmp_path / f"{part}.exc").write_text("")
    (tmp_path / "cntlist.rev").write_text("film%1:10:00:: 1 5\nfilm%2:36:00:: 1 1\n")
    result = bench.synonyms.wordnet(tmp_path)
    assert result == {"film": ["movie", "pic"], "movie": ["film", "pic"], "shoot": ["film"]}
    assert bench.synonyms.without(result, {"movie": ["film"]})["film"] == ["pic"]


# Ensemble


def test_an_ensemble_is_the_mean_of_its_members_and_shares_a_perturbation(bench: Any) -> None:
    members = [classifier("bilstm"), classifier("bilstm")]
    with torch.no_grad():
        for parameter in members[1].parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    texts = batch(split())
    ensemble = bench.ensemble.Ensemble(members)
    output, each = ensemble(texts), [member(texts) for member in members]
    assert_close(output.weights, (each[0].weights + each[1].weights) / 2)
    assert_close(output.logits.softmax(-1), (each[0].logits.softmax(-1) + each[1].logits.softmax(-1)) / 2)
    shift = 0.1 * torch.randn_like(ensemble.embed(texts))
    moved = ensemble(texts, ensemble.embed(texts) + shift)
    expected = [member(texts, member.embed(texts) + shift).weights for member in members]
    assert_close(moved.weights, (expected[0] + expected[1]) / 2)


# Synonym groups


def test_a_model_with_groups_is_probed_with_the_ids_of_a_model_without(bench: Any) -> None:
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
    probed = bench.models.without_groups(grouped, plain.tokenizer.vocabulary)
    data = probed.data(texts[:4], None)
    after = inference.split_outputs(probed.model, data)
    assert torch.equal(after.weights, before.weights)
    assert torch.equal(after.logits, before.logits)
    assert probed.tokenizer.vocabulary[: plain.tokenizer.size] == plain.tokenizer.vocabulary
    same = plain.data(texts[:4], None).text.ids == data.text.ids
    assert same.mean() > 0.8, "the ids of words that both know"
    rewritten = inference.split_outputs(probed.model, probed.data(["a fine picture ."], None))
    assert torch.equal(rewritten.weights[0], after.weights[0, : rewritten.weights.shape[1]])
    assert not np.array_equal(probed.data(["a fine picture ."], None).text.ids, data.text.ids[:6])


# Records and tables


def test_compact_records_keep_what_the_tables_need(bench: Any) -> None:
    whole = {"id": "x", "phase": "test", "row": "vanilla", "seed": 1, "macro-f1": 0.123456789, "config": {"k": 1e-3}}
    result = bench.records.compact({**whole, "seconds": 3.0, "commit": "abc", "skipped": {"a": 1}, "reason": ""})
    assert result == {**whole, "macro-f1": 0.123457}
    with pytest.raises(SystemExit, match="different runs"):
        bench.records.header([{"commit": "a"}, {"commit": "b"}])


@pytest.mark.slow
def test_the_tables_of_the_documentation_are_those_of_the_committed_records(bench: Any) -> None:
    page = (ROOT / "docs" / "results" / "stability-tables.md").read_text(encoding="utf-8")
    assert bench.table.page() == page


def test_seed_effects_have_a_row_and_cancel_against_the_own_start(bench: Any) -> None:
    """`seat` (`paper`) changes nothing: its ratio is that of its five vanilla models, and 1 against its own start."""
    table, key = bench.table, "jensen-shannon/3-synonyms"
    rows = table.with_first_seeds(table.rows_of(bench.records.study_records()))
    first, seat = (
        table.compare_with_vanilla(bench.statistics.ratio, rows, row, key, ["sst2-bilstm"]).value
        for row in (table.FIRST_SEEDS, "seat-paper-kl")
    )
    assert seat == pytest.approx(first, rel=1e-3) != pytest.approx(1, rel=0.05)
    own = table.compare_with_start(bench.statistics.paired, rows, "seat-paper-kl", key, ["sst2-bilstm"])
    assert own == pytest.approx((1, 1, 1), abs=1e-3)


def test_the_records_have_every_planned_model_once(bench: Any) -> None:
    groups = bench.plan.row_groups(bench.study.select_configurations(bench.records.read(bench.records.SELECTION)[1]))
    planned = {group.model_id(seed) for group in groups for seed in range(group.seeds)}
    ids = [record["id"] for record in bench.records.study_records() if record["phase"] == "test"]
    assert len(ids) == len(set(ids)) == 825
    assert set(ids) == planned


def test_flatness_of_a_model_that_starts_from_vanilla_is_measured_from_its_start(bench: Any) -> None:
    """Scores / 2 is a point of the curve: flatness alone explains all of it."""
    page = bench.page
    rows = bench.table.rows_of(bench.records.study_records())
    key, row, setting = "jensen-shannon/noise", "tempered-2.0", "rt-bilstm"
    own = bench.table.compare_with_start(bench.statistics.paired, rows, row, key, [setting])
    assert np.exp(page.tempered_log_ratio(rows, row, setting, key)) == pytest.approx(own.value)


@pytest.mark.slow
def test_the_page_is_made_from_the_committed_records(bench: Any) -> None:
    """Its tables and the numbers in its text."""
    assert bench.text.page() == (ROOT / "docs" / "results" / "stability.md").read_text(encoding="utf-8")


HEADLINE = (
    "shifts [{less consensus 3-synonyms} less than vanilla's]",
    "(95 % CI {less_interval consensus 3-synonyms}), and {less consensus 3-held-out} less under synonyms not seen",
    "shifts {less word-at-groups 3-synonyms} and {less word-at-groups 3-held-out} less, at a quarter of the cost",
)
COMPARED = (
    "| {change ROW 3-synonyms} | {change ROW 3-held-out} | {change ROW label-flip/3-synonyms} | "
    "{difference ROW macro-f1} | {difference ROW macro-f1 hate} |"
)
"""A line of the table in docs/how-to/train-stable-classifier.md."""
PASSAGES = {
    "README.md": (
        *HEADLINE,
        "shift {change word-at-groups 3-synonyms} (3 synonyms of the table), {change word-at-groups 3-held-out} "
        "(held-out synonyms); flips {change word-at-groups label-flip/3-synonyms} | two vanilla runs | "
        "macro-F1 {difference word-at-groups macro-f1 hate} on hate speech",
        "shift {change consensus-groups 3-synonyms}, {change consensus-groups 3-held-out}; "
        "flips {change consensus-groups label-flip/3-synonyms} | eight vanilla runs | "
        "macro-F1 {difference consensus-groups macro-f1 hate} on hate speech",
        "shift {change consensus 3-synonyms} (3 synonyms), {change consensus 3-held-out} (held-out synonyms)",
        "normalized entropy {coarse consensus normalized-entropy} |",
        "shift {change consensus-word-at 3-synonyms}, {change consensus-word-at 3-held-out} | thirteen vanilla runs | "
        "macro-F1 {difference consensus-word-at macro-f1 hate} on hate speech",
        "shift {change word-at 3-synonyms}, {change word-at 3-held-out} | two vanilla runs | "
        "label flips hardly fall ({change word-at label-flip/3-synonyms})",
        "flips {change synonym-augmentation label-flip/3-synonyms}, shift {change synonym-augmentation 3-synonyms} "
        "(3 synonyms) | two vanilla runs | no effect under PGD ({change synonym-augmentation pgd-attention})",
        "JSD between seeds {seeds ensemble} lower | five models at prediction time | "
        "3 synonyms only {change ensemble 3-synonyms}",
        "raises macro-F1 by {gain consensus macro-f1}. Under three synonyms it shifts {less consensus 3-synonyms} less "
        "than vanilla; vanilla flattened to the same degree already shifts {flat_less consensus 3-synonyms} less",
        "do not lower the shift under three synonyms by more than {own_less seat-joint-kl 3-synonyms}.",
    ),
    "docs/index.md": HEADLINE,
    "docs/tutorial.md": ("has {models all} models on four data sets",),
    "docs/results/index.md": (
        "it falls by {less consensus 3-synonyms} with `consensus`",
        "by {less word-at 3-synonyms} with `word-at`",
        "reversed: {less consensus 3-held-out} with `consensus`, {less word-at 3-held-out} with `word-at`",
        "less than either, by {less word-at-groups 3-synonyms} and {less word-at-groups 3-held-out}",
        "synonym groups {less word-at-groups 3-synonyms} and {less word-at-groups 3-held-out} |",
        "`consensus` shifts {less consensus 3-synonyms} less than vanilla, `word-at` {less word-at 3-synonyms} less; "
        "with unseen ones {less consensus 3-held-out} and {less word-at 3-held-out}",
        "flatter weights alone shift {flat_less consensus 3-synonyms} less",
        "On hate speech, `word-at` loses {loss word-at macro-f1 hate} macro-F1, "
        "and {loss word-at-groups macro-f1 hate} with groups.",
    ),
    "docs/how-to/train-stable-classifier.md": (
        f"| `word-at` with groups {COMPARED} 2 |".replace("ROW", "word-at-groups"),
        f"| `consensus` with groups {COMPARED} 8 |".replace("ROW", "consensus-groups"),
        f"| `word-at` {COMPARED} 2 |".replace("ROW", "word-at"),
        f"| `consensus` with a table {COMPARED} 8 |".replace("ROW", "consensus"),
        "shifts {less consensus 3-synonyms} less under three synonyms of the training table, "
        "{less consensus 3-held-out} less under held-out synonyms and {less consensus noise} less under noise",
        "change {less consensus prediction-change/3-synonyms} less, students of different seeds differ "
        "{seeds consensus} less, and macro-F1 rises by {gain consensus macro-f1}",
        "shifts {less consensus-word-at 3-synonyms} less under three synonyms and "
        "{less consensus-word-at 3-held-out} less under held-out synonyms, at macro-F1 "
        "{difference consensus-word-at macro-f1}. "
        "It is flatter (normalized entropy {coarse consensus-word-at normalized-entropy})",
        "macro-F1 fell by {loss consensus-word-at macro-f1 hate}",
        "shifts {less word-at 3-synonyms} less under three synonyms and {less word-at noise} less under noise, at "
        "macro-F1 {difference word-at macro-f1}. Label flips under synonyms hardly fall "
        "({less word-at label-flip/3-synonyms})",
    ),
}
"""Page -> its sentences about the study, with numbers of the records in braces."""


def test_the_numbers_of_other_pages_are_those_of_the_records(bench: Any) -> None:
    for name, passages in PASSAGES.items():
        text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
        for passage in passages:
            assert bench.text.fill(passage) in text, name


def test_a_number_of_the_text_follows_the_records(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vanilla shifts by 0.4 and 0.2, consensus by 0.1 and 0.05, and 5 % and 4 % of its labels flip."""
    names = ("jensen-shannon/3-synonyms", "macro-f1", "label-flip/3-synonyms")

    def seeds(*numbers: float) -> dict[int, dict[str, float]]:
        return {seed: dict(zip(names, numbers, strict=True)) for seed in range(2)}

    rows = {
        "vanilla": {"a": seeds(0.4, 0.5, 0.1), "b": seeds(0.2, 0.5, 0.1)},
        "consensus": {"a": seeds(0.1, 0.53, 0.05), "b": seeds(0.05, 0.52, 0.04)},
    }
    monkeypatch.setattr(bench.text, "_rows", lambda: rows)
    monkeypatch.setattr(bench.text, "SETTING_GROUPS", {"all": ["a", "b"], "a": ["a"], "b": ["b"]})
    monkeypatch.setattr(bench.text, "SETTINGS", ["a", "b"])
    filled = {
        "{less consensus 3-synonyms}": "75 %",
        "{less_interval consensus 3-synonyms}": "75–75 %",
        "{change consensus 3-synonyms a}": "−75 %",
        "{own_ratio consensus 3-synonyms b}": "0.25",
        "{difference consensus macro-f1}": "+0.025",
        "{gain_range consensus macro-f1 all}": "+0.020 to +0.030",
        "{flips consensus 3-synonyms}": "4–5 %",
        "{difference vanilla macro-f1}": "0.000",
    }
    assert {expression: bench.text.fill(expression) for expression in filled} == filled
    with pytest.raises(SystemExit, match="no comprehensiveness of consensus in all"):
        bench.text.fill("{ratio consensus comprehensiveness}")
