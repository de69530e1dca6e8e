"""A search: the same trials whatever interrupts it and however many workers run it."""

import json
import random
import shlex
import signal
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path

import optuna
import pytest
import torch

import commands
import steadygaze as sg
from kills import forked
from steadygaze.cli import main
from steadygaze.core.atomic_files import FolderBusy, locked
from steadygaze.core.errors import UserError
from steadygaze.core.search_space import SearchChoice, SearchRange
from steadygaze.estimator.model_folder import fingerprint
from steadygaze.estimator.resumable_training import train_many as _train_many
from steadygaze.estimator.text_classifier import load_classifier
from steadygaze.results.health import HEALTHY
from steadygaze.results.tuning import Trial, Tuning
from steadygaze.study.cell_record import Output
from steadygaze.study.compare import StudyRuntime
from steadygaze.study.trial import Pruner, TrialResult, train_round
from steadygaze.study.tune import _cell, _train_together, load_job, propose, tune
from steadygaze.study.tune_config import TuneConfig, search_spaces
from steadygaze.training import stacked_stages
from steadygaze.training.stacked_loop import StackedLoop
from steadygaze.training.technique_loop import TechniqueLoop, TrainingJob
from study.test_compare import Stopping
from study.tiny import DATA

WORDS = ("film", "plot", "cast", "scene", "music", "ending", "story", "camera")
EPOCH = "steadygaze.training.technique_loop.TechniqueLoop.train_epoch"


def write_texts(folder: Path) -> Path:
    """Texts that are easy enough for a few steps: a third of the words are good or bad."""
    draw = random.Random(0)
    folder.mkdir(exist_ok=True)
    for split, size in (("train", 80), ("validation", 40), ("test", 10)):
        lines = []
        for number in range(size):
            label = ("bad", "good")[number % 2]
            words = [label if draw.random() < 0.3 else draw.choice((*WORDS, "good", "bad")) for _ in range(8)]
            lines.append(json.dumps({"text": " ".join(words), "label": label}))
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="session", autouse=True)
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_texts(TEXTS.setdefault("folder", tmp_path_factory.mktemp("texts")))


TEXTS: dict[str, Path] = {}


def search(**changes: object) -> TuneConfig:
    usual: dict[str, object] = {
        "data": str(TEXTS["folder"]),
        "technique": "word-at",
        "trials": 9,
        "parallel": 3,
        "encoder": "average",
        "batch_size": 8,
        "epochs": 3,
        "settings": {"hidden": 8, "dimension": 12, "patience": 99},
        "spaces": {"learning_rate": SearchRange(1e-3, 0.3, log=True), "weight": SearchChoice(0.5, 1.0)},
    }
    return TuneConfig(**{**usual, **changes})  # type: ignore[arg-type]


def run(out: Path, config: TuneConfig | None = None, **machine: object) -> Tuning:
    return tune(config or search(), StudyRuntime(out, device="cpu", **machine))  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search that was never interrupted."""
    out = tmp_path_factory.mktemp("tune") / "whole"
    run(out)
    return out


@pytest.mark.slow
def test_a_search_ends_with_a_model_a_page_and_a_journal(whole: Path):
    result = json.loads((whole / "tuning.json").read_text())
    states = [trial["state"] for trial in result["trials"]]
    assert len(states) == 9
    assert set(states) == {"complete", "pruned"}, "choose settings that prune a trial"
    best = result["trials"][result["best"]]
    assert best["values"][0] == max(trial["values"][0] for trial in result["trials"] if trial["values"])
    assert load_classifier(whole / "model", "cpu").stored_.description.best_epoch["macro-f1"] == best["values"][0]
    assert result["trials"][0]["settings"] == {"learning_rate": 0.001, "weight": 1.0}  # the defaults
    pruned = [trial for trial in result["trials"] if trial["state"] == "pruned"]
    assert all(trial["epochs"] < 3 and not trial["values"] for trial in pruned)
    assert not any((whole / "cells" / f"trial-{trial['number']}" / "model").exists() for trial in pruned)
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(whole / "optuna.log")))
    study = optuna.load_study(study_name="word-at", storage=storage)
    assert study.best_trial.number == result["best"]
    assert len(study.trials) == 9
    page = (whole / "tuning.html").read_text()
    assert result["train_command"].split()[2] in page
    assert "<svg" in page


@pytest.mark.slow
@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("at", [14, 5, 2])
def test_an_interrupted_search_goes_on_and_ends_in_the_same(whole: Path, tmp_path: Path, monkeypatch, at: int):
    with monkeypatch.context() as patch:
        patch.setattr(EPOCH, Stopping(TechniqueLoop.train_epoch, at))
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "out")
    run(tmp_path / "out")
    assert (tmp_path / "out" / "tuning.json").read_bytes() == (whole / "tuning.json").read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_search_that_is_killed_ends_with_the_same_best_trial(whole: Path, tmp_path: Path, capsys):
    """SIGKILL while the fifth of nine trials is trained; then the same command."""
    out = tmp_path / "out"
    words = ["tune", str(TEXTS["folder"]), "--technique", "word-at", "--trials", "9", "--parallel", "3"]
    words += ["--encoder", "average", "--batch-size", "8", "--epochs", "3", "--workers", "1", "--device", "cpu"]
    for setting in ("hidden=8", "dimension=12", "patience=99", "learning_rate=0.001:0.3:log", "weight=0.5,1.0"):
        words += ["--set", setting]
    words += ["--out", str(out)]
    process = forked(main, words)
    while process.is_alive() and not (out / "cells" / "trial-4").exists():
        time.sleep(0.001)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    finished = len(list(out.glob("cells/*/record.json")))
    assert 4 <= finished < 9
    assert not (out / "tuning.json").exists()
    assert commands.run(capsys, *words).code == 0
    killed, expected = (json.loads((folder / "tuning.json").read_text()) for folder in (out, whole))
    assert killed["best"] == expected["best"]
    assert killed["trials"] == expected["trials"]
    models = [load_classifier(folder / "model", "cpu").stored_.model for folder in (out, whole)]
    assert fingerprint(models[0]) == fingerprint(models[1])


@pytest.fixture(scope="session")
def stacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same search with stacks, as on a GPU."""
    out = tmp_path_factory.mktemp("tune") / "stacked"
    with pytest.MonkeyPatch.context() as patch:
        sizes = use_stacks(patch)
        run(out)
    assert sizes == [3, 3, 3], "word-at stacks the trials of a round"
    return out


def use_stacks(patch: pytest.MonkeyPatch) -> list[int]:
    """Train the trials of a round as a stack, on a CPU; the sizes of the stacks."""
    sizes: list[int] = []

    class Counted(StackedLoop):
        def __init__(self, loops) -> None:
            sizes.append(len(loops))
            super().__init__(loops)

    patch.setattr(TrainingJob, "uses_stacks", property(lambda _: True))
    patch.setattr(stacked_stages, "StackedLoop", Counted)
    patch.setattr("steadygaze.study.tune.best_device", lambda _: torch.device("cuda"))
    return sizes


@pytest.mark.slow
def test_trials_in_a_stack_end_as_alone(stacked: Path, tmp_path: Path, monkeypatch):
    """Pruned trials leave the stack without an effect on the others."""
    sizes = use_stacks(monkeypatch)
    monkeypatch.setattr("steadygaze.study.tune.train_round", lambda *_: None)
    run(tmp_path / "alone")
    assert sizes == [1] * 9
    trials = [json.loads((out / "tuning.json").read_text())["trials"] for out in (stacked, tmp_path / "alone")]
    assert {trial["state"] for trial in trials[0]} == {"complete", "pruned"}
    assert trials[0] == trials[1]
    assert not list(stacked.glob("cells/*/*.unfinished"))


@pytest.mark.slow
@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("function", "at"), [("checkpoint.Checkpoint.save", 8), ("stacked_loop.StackedLoop.train_epoch", 5)]
)
def test_an_interrupted_stack_goes_on_and_ends_in_the_same(stacked: Path, tmp_path: Path, monkeypatch, function, at):
    """After the checkpoint of one of three models, and between two epochs."""
    use_stacks(monkeypatch)
    module, name, method = function.split(".")
    with monkeypatch.context() as patch:
        kind = getattr(import_module(f"steadygaze.training.{module}"), name)
        patch.setattr(kind, method, Stopping(getattr(kind, method), at))
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "out")
    run(tmp_path / "out")
    assert (tmp_path / "out" / "tuning.json").read_bytes() == (stacked / "tuning.json").read_bytes()


@pytest.mark.slow
def test_a_trial_that_diverges_in_a_stack_fails_alone(tmp_path: Path, monkeypatch):
    sizes = use_stacks(monkeypatch)
    config = search(trials=3, spaces={"learning_rate": SearchChoice(0.01, 10.0)}, technique="vanilla", prune=False)
    proposals = [{"learning_rate": 0.01}, {"learning_rate": 10.0}, {"learning_rate": 0.01}]
    monkeypatch.setattr("steadygaze.study.tune.propose", lambda *_: proposals)
    losses = StackedLoop._loss

    def diverging(self, widths):
        loss, terms = losses(self, widths)
        rates = torch.tensor([loop.job.training.learning_rate for loop in self.loops])
        return loss, {name: values.masked_fill(rates > 1, torch.nan) for name, values in terms.items()}

    monkeypatch.setattr(StackedLoop, "_loss", diverging)
    with pytest.warns(UserWarning, match="model 2, vanilla, seed 0: .*training diverged"):
        tuning = run(tmp_path / "out", config)
    assert sizes == [3]  # the failed one is not trained again
    assert [trial.state for trial in tuning.trials] == ["complete", "failed", "complete"]
    assert "training diverged" in tuning.trials[1].error


def test_a_driver_waits_while_another_trains_a_trial_of_the_round(tmp_path: Path, monkeypatch):
    job = load_job(search(), StudyRuntime(tmp_path, device="cpu"))
    values = {n: {"learning_rate": 0.01, "weight": 0.5} for n in range(2)}
    folder = tmp_path / "cells/trial-1/model.unfinished"
    folder.mkdir(parents=True)
    with ExitStack() as other_driver:
        other_driver.enter_context(locked(folder))
        with pytest.raises(FolderBusy, match="is training in"):
            train_round(job, values, [])
        trained: list[object] = []
        monkeypatch.setattr("steadygaze.study.trial.train_many", lambda *_, **__: trained.append(_train_many(*_, **__)))
        monkeypatch.setattr("steadygaze.study.tune.time.sleep", lambda _: other_driver.close())
        monkeypatch.setattr(
            "steadygaze.estimator.resumable_training.fit_many", lambda fits, *_, **__: [None] * len(fits)
        )
        cells = [_cell(job, {}, number, of_trial, []) for number, of_trial in values.items()]
        _train_together(job, cells, values, [])
    assert trained == [[None, None]]


@pytest.mark.slow
def test_the_number_of_workers_does_not_matter(whole: Path, tmp_path: Path):
    run(tmp_path / "out", workers=2)
    assert (tmp_path / "out" / "tuning.json").read_bytes() == (whole / "tuning.json").read_bytes()


@pytest.mark.slow
def test_a_search_can_be_extended_but_not_changed(whole: Path, tmp_path: Path, monkeypatch):
    run(tmp_path / "out", search(trials=4))
    with monkeypatch.context() as patch:
        patch.setattr(EPOCH, calls := Stopping(TechniqueLoop.train_epoch))
        run(tmp_path / "out")
        extended = calls.calls
    assert (tmp_path / "out" / "tuning.json").read_bytes() == (whole / "tuning.json").read_bytes()
    epochs = [trial["epochs"] for trial in json.loads((whole / "tuning.json").read_text())["trials"]]
    assert extended == sum(epochs[4:])
    with pytest.raises(UserError, match=r"contains a search with another audit.seed: 0, now 1"):
        run(tmp_path / "out", search(seed=1))


def test_the_printed_command_trains_the_best_model_again(whole: Path, tmp_path: Path, capsys):
    words = shlex.split(json.loads((whole / "tuning.json").read_text())["train_command"])
    arguments = [*words[1:-1], str(tmp_path / "again"), "--device", "cpu"]
    assert commands.run(capsys, *arguments).code == 0
    models = [load_classifier(folder, "cpu") for folder in (whole / "model", tmp_path / "again")]
    assert fingerprint(models[0].stored_.model) == fingerprint(models[1].stored_.model)


def test_the_test_split_is_not_there(tmp_path: Path):
    job = load_job(search(), StudyRuntime(tmp_path, device="cpu"))
    assert set(job.corpus.splits) == {"train", "validation"}
    assert job.validation == job.corpus.splits["validation"]


def test_a_failed_trial_invalidates_no_later_one_and_has_its_seed(tmp_path: Path, monkeypatch):
    runs: list[int] = []

    def run_trial(job: object, number: int, values: dict, *_: object) -> Output:
        runs.append(number)
        if number == 0:
            raise UserError(f"{len(runs)} MiB are free")  # another text in each run
        return Output(asdict(TrialResult(number, values, 7 + number, "complete", {"1": 0.5}, (0.5,))))

    monkeypatch.setattr("steadygaze.study.tune.run_trial", run_trial)
    monkeypatch.setattr("steadygaze.study.tune._save_best", lambda *_: None)
    monkeypatch.setattr("steadygaze.study.tune._health", lambda *_: HEALTHY)
    tuning = run(tmp_path, search(trials=4, parallel=2, seed=7, vary_seed=True))
    assert [trial.seed for trial in tuning.trials] == [7, 8, 9, 10]
    assert tuning.trials[0].state == "failed"
    run(tmp_path, search(trials=4, parallel=2, seed=7, vary_seed=True))
    assert runs == [0, 1, 2, 3, 0]


def complete(number: int, *scores: float) -> TrialResult:
    epochs = {str(epoch): score for epoch, score in enumerate(scores, 1)}
    settings = {"learning_rate": 0.01 * (number + 1), "weight": 1.0}
    return TrialResult(number, settings, number, "complete", epochs, (max(scores),))


@pytest.mark.parametrize(
    ("scores", "pruned"),
    [
        ([0.7], [False]),  # the median of 0.5, 0.6, 0.7, 0.8, 0.9
        ([0.69], [True]),
        ([0.75, 0.74], [False, True]),  # the best so far against the median 0.76
        ([0.77, 0.1], [False, False]),
    ],
)
def test_a_trial_is_pruned_below_the_median_of_two_or_more_earlier_ones(scores, pruned):
    earlier = [complete(n, first, first + 0.06) for n, first in enumerate((0.5, 0.6, 0.7, 0.8, 0.9))]
    pruner = Pruner(earlier)
    assert [pruner.should_prune(epoch, score) for epoch, score in enumerate(scores, 1)] == pruned
    assert Pruner(earlier[:2]).should_prune(1, 0.54)
    assert not Pruner(earlier[:2]).should_prune(1, 0.55)
    assert not Pruner(earlier[:1]).should_prune(1, 0.0)


def test_proposals_depend_on_the_seed_and_on_earlier_results_alone():
    config = search()
    spaces = search_spaces(config)
    trials = [complete(n, 0.5 + 0.01 * n) for n in range(6)]
    first = propose(config, spaces, trials)
    assert propose(config, spaces, trials) == first
    assert propose(search(trials=99), spaces, trials) == first
    assert propose(search(seed=1), spaces, trials) != first
    other = [complete(n, 0.9 - 0.01 * n) for n in range(6)]
    assert propose(config, spaces, other) != first
    assert all(1e-3 <= values["learning_rate"] <= 0.3 and values["weight"] in (0.5, 1.0) for values in first)


def tuning_of(values: list[tuple[float, float]]) -> Tuning:
    trials = tuple(Trial(number, {}, number, "complete", pair) for number, pair in enumerate(values))
    return Tuning(trials, (("macro-f1", "maximize"), ("jensen-shannon/noise", "minimize")), {})


def test_the_pareto_front_by_hand_and_against_optuna():
    tuning = tuning_of([(0.9, 0.5), (0.8, 0.1), (0.8, 0.2), (0.7, 0.05), (0.6, 0.3), (0.9, 0.5)])
    assert [trial.number for trial in tuning.front] == [0, 1, 3, 5]
    assert tuning.best is not None
    assert tuning.best.number == 0
    assert str(tuning) == "<Tuning: 6 trials, 6 complete; best trial 0: macro-f1 0.9000, jensen-shannon/noise 0.5000>"
    draw = random.Random(0)
    values = [(draw.random(), draw.random()) for _ in range(40)]
    study = optuna.create_study(directions=["maximize", "minimize"])
    study.add_trials([optuna.trial.create_trial(values=pair) for pair in values])
    assert [trial.number for trial in tuning_of(values).front] == [trial.number for trial in study.best_trials]


@pytest.mark.slow
def test_two_objectives_give_a_front(tmp_path: Path):
    config = search(objectives=("macro-f1", "jensen-shannon/noise"), trials=3, limit=10)
    tuning = run(tmp_path / "out", config)
    assert [len(trial.values) for trial in tuning.trials] == [2, 2, 2]
    assert all(value > 0 for trial in tuning.trials for value in trial.values)
    assert tuning.best in tuning.front
    assert "Pareto front" in (tmp_path / "out" / "tuning.html").read_text()


BAD = {
    "unknown technique": (["--technique", "word-ta"], "did you mean 'word-at'"),
    "unknown setting": (["--set", "epsilo=0:1"], "did you mean 'epsilon'"),
    "out of range": (["--set", "epsilon=0:1000"], "epsilon"),
    "nothing varies": (["--set", "epsilon=0.1"], "every setting is fixed"),
    "no space": (["--search", "clip"], "unknown setting with a search space 'clip'"),
    "no direction": (["--objective", "normalized-entropy"], "has no better direction"),
    "unknown objective": (["--objective", "macro-f2"], "macro-f2"),
    "unknown engine": (["--engine", "dask"], "unknown engine 'dask'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_a_sentence_exit_code_2_and_nothing_written(capsys, tmp_path: Path, case: str):
    arguments, hint = BAD[case]
    words = ["tune", DATA, "--technique", "word-at", "--out", str(tmp_path / "t"), "--device", "cpu", *arguments]
    ended = commands.run(capsys, *words)
    assert ended.code == 2
    assert hint in ended.err
    assert not (tmp_path / "t" / "cells").exists()


def test_the_command_prints_trials_and_the_command_that_trains_the_best(capsys, tmp_path: Path):
    command = partial(commands.run, capsys)
    words = ["tune", DATA, "--technique", "vanilla", "--trials", "2", "--epochs", "1", "--encoder", "average"]
    words += ["--set", "hidden=4", "--workers", "1", "--device", "cpu", "--out", str(tmp_path / "t")]
    ended = command(*words)
    assert ended.code == 0
    assert ended.out.splitlines()[0].split() == ["trial", "macro-f1", "learning_rate", "seed", "epochs"]
    assert ended.out.splitlines()[-1].startswith("steadygaze train 'planted-reviews")
    assert "2 of 2 done" in ended.err
    assert json.loads(command(*words, "--json").out)["spaces"] == {"learning_rate": "0.0001:0.01:log"}


def test_from_python(tmp_path: Path):
    texts, labels = ["good fine film", "bad dull film"] * 20, ["yes", "no"] * 20
    options = {"encoder": "average", "epochs": 1, "workers": 1, "device": "cpu", "settings": {"hidden": 4}}
    tuning = sg.tune(texts, labels, technique="word-at", trials=2, search={"epsilon": (0.1, 1.0, "log")},
                     out=tmp_path / "t", **options)  # fmt: skip
    assert tuning.spaces == {"epsilon": "0.1:1.0:log"}
    assert list(sg.load(tmp_path / "t" / "model").classes_) == ["no", "yes"]
    with pytest.raises(UserError, match="of other texts"):
        sg.tune(texts[:30], labels[:30], technique="word-at", trials=2, out=tmp_path / "t", **options)
    with pytest.raises(UserError, match="epsilon takes"):
        sg.tune(texts, labels, technique="word-at", search={"epsilon": "0.1:1"}, **options)


def test_trials_have_one_seed_unless_they_shall_vary():
    fixed, varied = (search(seed=7, vary_seed=vary) for vary in (False, True))
    assert [fixed.classifier(number, {}).seed for number in range(3)] == [7, 7, 7]
    assert [varied.classifier(number, {}).seed for number in range(3)] == [7, 8, 9]
