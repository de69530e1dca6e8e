"""A whole comparison: interrupted and taken up, never done twice, and fair to all."""

import gc
import json
import shutil
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.auditing.prepare_case import prepare
from steadygaze.core.atomic_files import locked
from steadygaze.core.errors import UserError
from steadygaze.estimator.model_folder import fingerprint
from steadygaze.estimator.text_classifier import TextClassifier, load_classifier
from steadygaze.explainers import EXPLAINERS
from steadygaze.properties.protocols.stability import seed_consistency
from steadygaze.results.report import Report
from steadygaze.results.row import ValueKey
from steadygaze.study import cells as cell
from steadygaze.study.cells import ComparisonJob, pairwise_divergence, references
from steadygaze.study.compare import StudyRuntime, _used_settings, begin, finish
from steadygaze.study.engine import run_round
from steadygaze.study.executor import InProcess
from steadygaze.study.study_data import load_study_data
from steadygaze.study.study_folder import StudyFolder, read_arrays
from steadygaze.training.technique_loop import TechniqueLoop
from study.tiny import NO_SWAPS, SYNONYMS, TWO, config_with, run

NOISE = ValueKey.parse("jensen-shannon/noise|attention")
BETWEEN_SEEDS = ValueKey.parse("jensen-shannon/seeds|attention|0+1")


def stamps(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}


class Stopping:
    """Calls through until call number `at`, and is Ctrl-C then."""

    def __init__(self, right, at: int = 10**9) -> None:
        self.right, self.at, self.calls = right, at, 0
        self.arguments = []

    def __call__(self, *inputs, **more):
        self.calls += 1
        self.arguments.append(inputs[0])
        if self.calls == self.at:
            raise KeyboardInterrupt
        return self.right(*inputs, **more)

    def __get__(self, loop, kind):
        """As a method."""
        return partial(self, loop)


@pytest.mark.slow
@pytest.mark.sweep(keep=1)
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("where", "at", "left", "epochs"),
    [
        (
            "steadygaze.training.technique_loop.TechniqueLoop.train_epoch",
            4,
            "model.unfinished",
            1,
        ),  # in the second epoch of the second model
        ("steadygaze.study.cells.run_audit", 2, "model", 0),  # trained, not audited
    ],
)
def test_an_interrupted_comparison_goes_on_and_ends_in_the_same(
    whole: Path, tmp_path: Path, monkeypatch, where, at, left, epochs
):
    config, out = config_with(epochs=2), tmp_path / "out"
    right = {"train_epoch": TechniqueLoop.train_epoch, "run_audit": cell.run_audit}[where.rpartition(".")[2]]
    with monkeypatch.context() as patch:
        patch.setattr(where, Stopping(right, at))
        with pytest.raises(KeyboardInterrupt):
            run(out, config)
    first, second = out / "cells" / "vanilla-0", out / "cells" / "word-at-0"
    assert (first / "report.json").is_file()
    assert [path.name for path in second.iterdir()] == [left]
    before = stamps(first)
    with monkeypatch.context() as patch:
        patch.setattr(
            "steadygaze.training.technique_loop.TechniqueLoop.train_epoch",
            counted := Stopping(TechniqueLoop.train_epoch),
        )
        result = run(out, config)
    assert counted.calls == epochs
    assert stamps(first) == before
    for name in (
        "comparison.json",
        "settings.json",
        "cells/word-at-0/values.safetensors",
        "cells/word-at-0/report.json",
    ):
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name
    assert result.to_json() == (whole / "comparison.json").read_text()


@pytest.mark.slow
def test_what_is_finished_is_not_done_again(done: Path, monkeypatch):
    for name in ("cells.train", "cells.audit", "cells.pairwise_divergence"):
        monkeypatch.setattr(f"steadygaze.study.{name}", lambda *_, **__: pytest.fail("done again"))
    before, cells = (done / "comparison.json").read_text(), stamps(done / "cells")
    calls = []
    run(
        done,
        config_with(techniques=TWO, seeds=2, synonyms=None, settings_for=NO_SWAPS),
        on_progress=lambda *message: calls.append(message),
    )
    assert (done / "comparison.json").read_text() == before
    assert stamps(done / "cells") == cells
    assert calls[0] == ("vanilla, seed 0: done", 1, 6)
    assert calls[-1] == ("anchored, between seeds: done", 6, 6)


def test_another_order_is_refused_and_nothing_is_touched(done: Path):
    before = stamps(done)
    with pytest.raises(UserError, match=r"another audit.seed: 0, now 1"):
        run(done, config_with(techniques=TWO, seeds=2, seed=1, synonyms=None, settings_for=NO_SWAPS))
    assert stamps(done) == before


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"seeds": 3}, ""),
        ({"techniques": ("vanilla", "word-at", "seat")}, ""),
        ({"techniques": ("vanilla", "attention-at")}, ""),
        ({"epochs": 2}, "another own.vanilla.epochs: 1, now 2"),
        ({"explainer": "gradient", "seeds": 3}, "another explainer.vanilla: 'attention', now 'gradient'"),
        ({"settings_for": {"word-at": {"hidden": 8}}, "seeds": 3}, "another own.word-at.hidden: 4, now 8"),
        ({"data": "planted-reviews:sizes=[61,20,16]"}, "another data.corpus"),
    ],
)
def test_a_comparison_can_be_extended_by_techniques_and_seeds_but_not_changed(tmp_path: Path, change, hint):
    runtime = StudyRuntime(tmp_path, device="cpu")
    keys = {cell.name: cell.key for cell in begin(config_with(seeds=2), runtime).cells()}
    settings = (tmp_path / "settings.json").read_bytes()
    if hint:
        with pytest.raises(UserError, match=hint):
            begin(config_with(**{"seeds": 2, **change}), runtime)
        assert (tmp_path / "settings.json").read_bytes() == settings
        return
    job = begin(config_with(**{"seeds": 2, **change}), runtime)
    new = {cell.name: cell.key for cell in job.cells() if not cell.name.endswith("-seeds")}
    assert json.loads((tmp_path / "settings.json").read_text())["techniques"] == list(job.config.techniques)
    assert all(keys.get(name, key) == key for name, key in new.items())
    assert {"vanilla-0", "vanilla-1"} <= keys.keys() & new.keys()
    assert new.keys() - keys.keys()


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_an_extended_comparison_equals_one_that_was_run_at_once(done: Path, tmp_path: Path):
    for seeds in (1, 2):
        run(tmp_path, config_with(techniques=TWO, seeds=seeds, synonyms=None, settings_for=NO_SWAPS))
    assert (tmp_path / "comparison.json").read_bytes() == (done / "comparison.json").read_bytes()


def test_a_cell_holds_a_model_its_report_and_a_number_for_each_text(done: Path):
    place = done / "cells" / "anchored-1"
    assert sorted(path.name for path in place.iterdir()) == [
        "model",
        "record.json",
        "report.json",
        "values.safetensors",
    ]
    assert load_classifier(place / "model", "cpu").seed == 1
    report, values = Report.from_json(place / "report.json"), read_arrays(place / "values.safetensors")
    row = report.find("jensen-shannon/noise")
    assert row is not None
    assert row.settings["technique"] == "anchored"
    assert values[NOISE].shape == (16,)
    assert np.nanmean(values[NOISE]) == pytest.approx(row.value)
    assert values[ValueKey.parse("accuracy")].shape == (16,)


def test_the_table_holds_the_means_of_the_cells(done: Path):
    results = {
        entry["technique"]: entry["numbers"]
        for entry in json.loads((done / "comparison.json").read_text())["techniques"]
    }
    assert list(results) == list(TWO)
    for technique in TWO:
        cells = [read_arrays(done / "cells" / f"{technique}-{seed}" / "values.safetensors") for seed in (0, 1)]
        for measure in ("jensen-shannon/noise", "normalized-entropy", "comprehensiveness/above-random"):
            means = [np.nanmean(values[ValueKey.parse(f"{measure}|attention")]) for values in cells]
            assert results[technique][measure]["seeds"] == pytest.approx(means)
            assert results[technique][measure]["value"] == pytest.approx(np.mean(means))
        between = read_arrays(done / "cells" / f"{technique}-seeds" / "values.safetensors")[BETWEEN_SEEDS]
        assert results[technique]["jensen-shannon/seeds"]["value"] == pytest.approx(between.mean())
        assert between.shape == (16,)
        assert between.min() > 0


def test_a_page_is_written_beside_the_numbers(done: Path):
    page = (done / "comparison.html").read_text()
    assert all(name in page for name in TWO)
    assert str(done) not in page


def test_uninformative_weights_are_flagged_in_any_technique(done: Path):
    """One epoch over 60 texts leaves attention even: every technique has collapsed, and no stability is a merit."""
    for technique in json.loads((done / "comparison.json").read_text())["techniques"]:
        assert technique["collapsed"] == [True, True]
        assert "better" not in [number["mark"] for name, number in technique["numbers"].items() if "jensen" in name]
    assert "its weights do not depend on the text: collapsed" in (done / "comparison.html").read_text()


def test_a_vanilla_cell_is_the_reference_of_its_seed(done: Path, tmp_path: Path):
    """And the same student comes of it as of a reference that was trained for it."""
    student = load_classifier(done / "cells" / "anchored-1" / "model", "cpu")
    vanilla = load_classifier(done / "cells" / "vanilla-1" / "model", "cpu")
    assert student.stored_.description.references == [fingerprint(vanilla.stored_.model)]
    assert not (done / ".teacher-cache").exists()
    config = config_with(techniques=("anchored", "vanilla"), seeds=2, settings_for=NO_SWAPS)
    alone = cell.train(config, load_study_data(config), StudyFolder(tmp_path), "anchored", 1, "cpu")
    assert alone.stored_.description.references == []
    assert len(list((tmp_path / ".teacher-cache").glob("*.safetensors"))) == 1
    ours, theirs = student.stored_.model.state_dict(), alone.stored_.model.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize(
    ("seed", "changes", "many"),
    [
        (0, {}, 2),  # teachers 0 and 1, which are cells
        (1, {}, 0),  # teachers 2 and 3, which are not
        (0, {"hidden": 9}, 0),  # other models
        (0, {"teacher": "word-at"}, 0),  # other teachers
    ],
)
def test_teachers_are_cells_where_all_of_them_are(done: Path, seed, changes, many):
    config = config_with(
        techniques=("vanilla", "consensus"), seeds=2, settings_for={"consensus": {"teachers": 2, **changes}}
    )
    assert [reference.seed for reference in references(config, StudyFolder(done), "consensus", seed, "cpu")] == list(
        range(many)
    )


def test_without_a_table_no_model_is_measured_under_synonyms(done: Path):
    for name in TWO:
        values = read_arrays(done / "cells" / f"{name}-0" / "values.safetensors")
        assert not [measure for measure in values if "synonym" in str(measure)]


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_even_attention_holds_perfectly_still_and_wins_nothing(tmp_path: Path):
    """And with one seed there is no number between seeds, and no interval of a number of the whole set."""
    settings = {"hidden": 8, "dimension": 12, "learning_rate": 0.2, "patience": 99}
    even = {"word-at": {"attention": "uniform"}}
    config = config_with(encoder="cnn", epochs=8, settings=settings, settings_for=even)
    result = run(tmp_path / "out", config)
    vanilla, silent = result.standings
    assert (vanilla.collapsed, silent.collapsed) == ((False,), (True,))
    assert silent.entries["jensen-shannon/noise"].row.value < vanilla.entries["jensen-shannon/noise"].row.value
    assert silent.entries["jensen-shannon/noise"].mark == "bought"
    assert [measure for measure in silent.marked("better") if measure.startswith("jensen")] == []
    assert "only one model" in silent.entries["jensen-shannon/seeds"].row.note
    assert silent.entries["expected-calibration-error"].row.interval is None
    assert any("Only one seed was trained" in note for note in result.notes)
    assert not (tmp_path / "out" / "cells" / "vanilla-seeds").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_a_model_that_selects_is_held_by_its_rationale_against_the_attention_of_one_that_attends(tmp_path: Path):
    config = config_with(techniques=("vanilla", "a2r"), seeds=2)
    result = run(tmp_path / "out", config)
    assert result.facts["explanation"] == "attention of vanilla, rationale of a2r"
    for standing, name in zip(result.standings, ("attention", "rationale"), strict=True):
        values = read_arrays(tmp_path / "out" / "cells" / f"{standing.technique}-0" / "values.safetensors")
        entry = standing.entries["jensen-shannon/noise"]
        assert entry.row.settings["explainer"] == name
        assert entry.seeds[0] == pytest.approx(np.nanmean(values[ValueKey(NOISE.measure, name)]))
        between = read_arrays(tmp_path / "out" / "cells" / f"{standing.technique}-seeds" / "values.safetensors")
        assert list(map(str, between)) == [f"jensen-shannon/seeds|{name}|0+1"]
    assert result.standings[1].entries["jensen-shannon/noise"].against is not None


def test_a_technique_that_cannot_train_such_a_model_is_reported_first(tmp_path: Path):
    with pytest.raises(UserError, match="seat: "):
        run(tmp_path / "out", config_with(techniques=("vanilla", "seat"), settings={"decoder": "mlp"}))
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_comparison_with_every_question_of_the_audit(tmp_path: Path):
    result = run(tmp_path / "out", config_with(seeds=2, synonyms=SYNONYMS))
    for standing in result.standings:
        assert [measure for measure, entry in standing.entries.items() if np.isnan(entry.row.value)] == []
    assert len(result.baseline.answers) >= 5


def test_the_divergence_between_models_equals_that_of_an_audit(done: Path):
    """The audit of one model with the others beside it measures all pairs in the same way."""
    config = config_with(techniques=TWO, seeds=2)
    models = [load_classifier(done / "cells" / f"anchored-{seed}" / "model", "cpu") for seed in (0, 1)]
    first, second = (
        prepare(
            as_adapter(model), load_study_data(config).examples, {"attention": EXPLAINERS["attention"]()}, config
        ).case
        for model in models
    )
    (message,) = [
        finding
        for finding in seed_consistency(replace(first, others=(second,)))
        if finding.measure == "jensen-shannon/seeds"
    ]
    kept = read_arrays(done / "cells" / "anchored-seeds" / "values.safetensors")[BETWEEN_SEEDS]
    assert message.values is not None
    assert np.allclose(message.values.numpy(), kept, atol=1e-12)


def test_models_of_one_technique_are_not_held_all_at_once(done: Path):
    """While the next is loaded there is the first, and none of those between."""
    config = config_with(techniques=TWO, seeds=2)
    known, alive = [], []

    def models() -> Iterator[TextClassifier]:
        for seed in (0, 1, 0, 1):
            gc.collect()
            alive.append(sum(reference() is not None for reference in known))
            clf = load_classifier(done / "cells" / f"anchored-{seed}" / "model", "cpu")
            known.append(weakref.ref(clf.stored_.model))
            yield clf
            del clf

    result = pairwise_divergence(config, load_study_data(config), models())
    assert alive == [0, 1, 1, 1]
    pairs = {key.models: values for key, values in result.items()}
    assert set(pairs) == set(combinations(range(4), 2))
    assert not pairs[0, 2].any()
    assert np.array_equal(pairs[0, 1], pairs[2, 3])


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_models_that_are_trained_as_a_stack_give_the_same_comparison(done: Path, tmp_path: Path, monkeypatch):
    """On a CPU a stack trains its models one after another; the first cell of a technique trains all of them."""
    monkeypatch.setattr("steadygaze.study.compare.uses_stacks", lambda *_: True)
    monkeypatch.setattr("steadygaze.study.cells.train_many", stack := Stopping(cell.train_many))
    run(tmp_path / "out", config_with(techniques=TWO, seeds=2, synonyms=None, settings_for=NO_SWAPS))
    assert [len(call) for call in stack.arguments] == [2, 0, 2, 0]
    assert (tmp_path / "out" / "comparison.json").read_bytes() == (done / "comparison.json").read_bytes()


@pytest.mark.slow
def test_a_driver_waits_while_another_trains_the_stack(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("steadygaze.study.engine.POLL", 0.01)
    monkeypatch.setattr(cell, "audit", lambda *_: None)
    monkeypatch.setattr(cell, "write", lambda folder, _: [(folder / n).touch() for n in (cell.VALUES, cell.REPORT)])
    job = replace(begin(config_with(seeds=2), StudyRuntime(tmp_path, device="cpu")), stacks=True)
    started: list[str] = []
    with ExitStack() as other_driver:
        for seed in (0, 1):
            folder = job.folder.cell("vanilla", seed) / "model.unfinished"
            folder.mkdir(parents=True)
            other_driver.enter_context(locked(folder))

        def on_progress(activity: str, done: int, total: int) -> None:
            started.append(activity)
            if len(started) == 8:
                other_driver.close()

        records = run_round(job.cells()[:2], tmp_path, InProcess(), on_progress)
    assert [record.error for record in records.values()] == ["", ""]
    assert len(started) > 8


@pytest.mark.slow
@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(("settings", "small"), [({}, True), ({"small_data": False}, False)])
def test_small_data_are_trained_with_the_settings_of_a_single_training(tmp_path, settings, small):
    sizes = {"hidden": 4, "dimension": 6, **settings}
    data = "planted-reviews:sizes=[120,20,16]"
    config = config_with(data=data, techniques=TWO, settings=sizes, settings_for=NO_SWAPS)
    study, folder = load_study_data(config), StudyFolder(tmp_path)
    vanilla, student = (cell.train(config, study, folder, name, 0, "cpu") for name in TWO)
    parts = [
        [[e.text for e in study.corpus.splits[part]], [e.label for e in study.corpus.splits[part]]]
        for part in ("train", "validation")
    ]
    direct = TextClassifier("average", epochs=1, settings=sizes, device="cpu", verbose=False)
    direct.fit(*parts[0], validation=parts[1])
    assert direct.stored_.description.text["small_data"] is small
    assert fingerprint(vanilla.stored_.model) == fingerprint(direct.stored_.model)
    assert student.stored_.description.references == [fingerprint(vanilla.stored_.model)]
    used = _used_settings(ComparisonJob(config, study, folder, "cpu", ()), "vanilla")
    assert (used["batch_size"], used["hidden"], used["small_data"]) == ((8, 4, True) if small else (32, 4, False))


@pytest.mark.slow
def test_the_settings_of_the_page_are_those_of_the_trained_models(done, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(done, folder)
    config = config_with(techniques=TWO, seeds=2, synonyms=None, settings_for=NO_SWAPS)
    for name in TWO:
        file = StudyFolder(folder).cell(name, 0) / "model" / "config.json"
        stored = json.loads(file.read_text())
        stored["training"]["batch_size"] = 8 if name == "vanilla" else 16
        stored["architecture"]["word_dropout"] = 0.3
        file.write_text(json.dumps(stored | {"vectors": "glove-50d"}))
    job = begin(config, StudyRuntime(folder, device="cpu"))
    used = [_used_settings(job, name) for name in TWO]
    assert [settings["batch_size"] for settings in used] == [8, 16]
    assert [settings["word_dropout"] for settings in used] == [0.3, 0.3]
    assert [settings["vectors"] for settings in used] == ["glove-50d"] * 2
    comparison = finish(job, StudyRuntime(folder, device="cpu"))
    assert (comparison.settings["word_dropout"], comparison.settings["hidden"]) == (0.3, 4)
    assert [result.settings["batch_size"] for result in comparison.standings] == [8, 16]
    shutil.rmtree(StudyFolder(folder).cell("vanilla", 0) / "model")
    assert _used_settings(job, "vanilla")["batch_size"] == 32


@pytest.mark.slow
def test_all_models_of_a_comparison_have_the_synonym_groups(tmp_path: Path, quick: None):
    run(tmp_path / "out", config_with(synonym_groups=SYNONYMS))
    for folder in (tmp_path / "out" / "cells").iterdir():
        assert load_classifier(folder / "model", "cpu").synonym_groups.groups
    identity = json.loads((tmp_path / "out" / "settings.json").read_text())
    assert identity["synonym_groups"].startswith("given in Python, ")
    with pytest.raises(UserError, match="synonym_groups"):
        run(tmp_path / "out", config_with())
