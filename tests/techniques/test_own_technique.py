"""Techniques of a user's own module: training, workers, keys of cells, wrong losses."""

import json
import sys
from pathlib import Path

import pytest

import commands
import steadygaze as sg
from steadygaze.cli.shared_options import import_modules
from steadygaze.core.errors import UserError
from steadygaze.core.settings import settings
from steadygaze.techniques import TECHNIQUES, own_techniques
from steadygaze.techniques.technique import Technique

MODULE = """
from torch.nn.functional import cross_entropy
from steadygaze.core.settings import settings
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.technique import Technique

@settings
class Penalty(Technique):
    \"\"\"Cross-entropy times a factor.\"\"\"

    factor: float = 1.0
    \"\"\"Factor.\"\"\"

    def loss(self, model, batch, context):
        task = cross_entropy(model(batch).logits, batch.gold, reduction="none")
        return RESULT

TECHNIQUES["own-penalty"] = Penalty
"""
PER_TEXT = '{"task": self.factor * task}'
ROWS = [("good great fine", "up"), ("bad awful poor", "down")] * 12
TEXTS, LABELS = [text for text, _ in ROWS], [label for _, label in ROWS]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write a module that registers a technique, import it, and forget both at the end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(TECHNIQUES, "data", {**TECHNIQUES.data})

    def write(result: str = PER_TEXT) -> None:
        Path("own_penalty.py").write_text(MODULE.replace("RESULT", result).replace("\\", ""))
        sys.modules.pop("own_penalty", None)
        import_modules(["own_penalty"])

    yield write
    sys.modules.pop("own_penalty", None)


def classifier() -> sg.TextClassifier:
    return sg.TextClassifier("average", "own-penalty", epochs=1, settings={"factor": 2.0}, device="cpu", verbose=False)


def test_a_technique_of_a_module_trains_and_its_model_loads_without_it(module, tmp_path: Path):
    module()
    clf = classifier().fit(TEXTS, LABELS)
    clf.save(tmp_path / "model")
    before = clf.predict_proba(TEXTS[:2])
    del TECHNIQUES.data["own-penalty"]
    assert (sg.load(tmp_path / "model").predict_proba(TEXTS[:2]) == before).all()
    assert own_techniques(["vanilla"]) == {}


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ('{"task": task.mean()}', r"'task' of the loss of Penalty must have one number per text.*found \(\)"),
        ("task", "must return a dict of loss terms by name, found Tensor"),
        ('{"task": 1.0}', "found float"),
        ("{}", "must return a dict"),
    ],
)
def test_a_loss_with_the_wrong_shape_is_refused(module, result: str, reason: str):
    module(result)
    with pytest.raises(UserError, match=reason):
        classifier().fit(TEXTS, LABELS)


def test_the_key_of_a_cell_depends_on_the_file_of_the_technique(module):
    from steadygaze.study.code_version import technique_source

    module()
    first = technique_source("own-penalty")
    module()
    assert technique_source("own-penalty") == first
    module('{"task": 3 * self.factor * task}')
    assert technique_source("own-penalty") != first
    assert technique_source("vanilla") == {}


def test_a_run_is_not_resumed_with_another_loss(module, tmp_path: Path):
    """Comment lines do not count."""
    module()
    classifier().fit(TEXTS, LABELS, checkpoint=tmp_path / "run")
    module(f"{PER_TEXT}\n        # unchanged")
    classifier().fit(TEXTS, LABELS, checkpoint=tmp_path / "run", resume=True)
    module('{"task": 3 * self.factor * task}')
    with pytest.raises(UserError, match="another technique_source"):
        classifier().fit(TEXTS, LABELS, checkpoint=tmp_path / "run", resume=True)


def test_an_unknown_technique_names_the_option():
    with pytest.raises(UserError, match=r"unknown technique 'mine'.*--import MODULE"):
        sg.TextClassifier(technique="mine", verbose=False).fit(TEXTS, LABELS)


def test_a_missing_module_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(UserError, match="--import no_such_module: No module named"):
        import_modules(["no_such_module"])


def test_the_file_name_of_a_module_is_accepted(module):
    module()
    assert import_modules(["own_penalty.py"]) == ["own_penalty"]


def test_the_printed_commands_import_the_module(module):
    from steadygaze.properties.commands import rerun_command
    from steadygaze.results.tuning import Trial
    from steadygaze.study.tune import train_command
    from steadygaze.study.tune_config import TuneConfig

    module()
    trial = Trial(0, {"factor": 2.0}, 0, "complete")
    own, built_in = (
        train_command(TuneConfig(data="sst2", technique=name), trial) for name in ("own-penalty", "vanilla")
    )
    assert own[own.index("--import") + 1] == "own_penalty"
    assert "--import" not in built_in
    settings = {"model": "m", "data": "sst2", "imports": ("own_penalty",)}
    assert rerun_command(settings)[-2:] == ("--import", "own_penalty")


@pytest.mark.slow
def test_commands_import_the_module(module, capsys: pytest.CaptureFixture[str]):
    module()
    for number, command in enumerate(
        (
            ("list", "techniques"),
            ("audit", "no-model", "--data", "no.csv"),
            ("compare", "no.csv", "--techniques", "vanilla,own-penalty", "--out", "c"),
            ("tune", "no.csv", "--technique", "own-penalty", "--out", "t"),
            ("explain", "no-model", "a text"),
            ("word-weights", "no-model", "--data", "no.csv"),
        )
    ):
        Path(f"register_{number}.py").write_text(f"from pathlib import Path\nPath('imported-{number}').touch()\n")
        commands.run(capsys, *command, "--import", f"register_{number}")
        assert Path(f"imported-{number}").exists(), command


def test_a_value_outside_its_limits_is_a_user_error():
    from steadygaze.techniques.word_at import WordAT

    with pytest.raises(UserError, match=r"setting 'epsilon': found -1; it should be greater than or equal to 0"):
        WordAT(epsilon=-1)
    with pytest.raises(UserError, match=r"unknown setting 'epsilom': did you mean 'epsilon'"):
        WordAT(epsilom=1)


def test_a_class_without_loss_or_decorator_names_the_fix(module, monkeypatch: pytest.MonkeyPatch):
    @settings
    class NoLoss(Technique):
        """No loss."""

    class Undecorated(Technique):
        """No decorator."""

        factor: float = 1.0

        def loss(self, model, batch, context):
            return {}

    module()
    with pytest.raises(UserError, match=r"technique NoLoss has no loss: define loss\(self, model, batch, context\)"):
        NoLoss()
    with pytest.raises(UserError, match=r"factor of the technique Undecorated.*put @settings above the class"):
        Undecorated()
    TECHNIQUES["own-undecorated"] = Undecorated
    with pytest.raises(UserError, match="put @settings above the class"):
        sg.TextClassifier(technique="own-undecorated", settings={"factor": 2.0}).fit(TEXTS, LABELS)


@pytest.mark.slow
def test_worker_processes_know_the_technique(module, tmp_path: Path):
    from steadygaze.study.compare import StudyRuntime, compare
    from steadygaze.study.compare_config import CompareConfig

    module()
    lines = [json.dumps({"text": text, "label": label}) for text, label in ROWS * 2]
    (tmp_path / "data.jsonl").write_text("\n".join(lines))
    config = CompareConfig(
        data=str(tmp_path / "data.jsonl"),
        techniques=("vanilla", "own-penalty"),
        seeds=1,
        encoder="average",
        epochs=1,
        measures=("accuracy",),
    )
    compare(config, StudyRuntime(tmp_path / "out", None, "cpu", workers=2))
    records = [json.loads(file.read_text()) for file in (tmp_path / "out").rglob("cell.json")]
    assert not [record for record in records if record.get("error")]


def test_a_command_imports_only_what_is_typed(module, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    module()
    Path("run_me.py").write_text("from pathlib import Path\nPath('executed').touch()\n")
    Path("options.toml").write_text('import = ["run_me"]\n')
    commands.refused(capsys, "train", "data.csv", "--out", "model", "--config", "options.toml")
    assert not Path("executed").exists()
    command = ("train", "no.csv", "--out", "model", "--import")
    commands.refused(capsys, *command, "run_me")
    assert Path("executed").exists()
    assert "--import no_such_module" in commands.refused(capsys, *command, "no_such_module")
