"""The command line: what it prints where, its exit codes, and that bad input changes nothing."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import commands
from commands import Ended
from steadygaze import cli
from steadygaze.adapters import streaming
from steadygaze.cli.registry_listing import list_registry
from steadygaze.cli.train_command import _saved_epoch
from steadygaze.core.rounding import percent
from steadygaze.core.settings import field_names
from steadygaze.data.batches import collate
from steadygaze.estimator import resumable_training
from steadygaze.techniques import TECHNIQUES

ROWS = [
    ("A fine and witty film", "good"),
    ("Dull, slow and far too long", "bad"),
    ("I loved it", "good"),
    ("Awful", "bad"),
] * 8
QUICK = ["--epochs", "1", "--set", "hidden=8", "--set", "dimension=8"]


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line in this process."""
    return partial(commands.run, capsys)


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "films.csv"
    path.write_text("text,label\n" + "".join(f'"{text}",{label}\n' for text, label in ROWS), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def model(csv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "films"
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", str(csv), "--out", str(folder), *QUICK, "--quiet"])
    assert not ended.value.code
    return folder


def test_train_saves_a_model_and_prints_its_folder(run: Run, csv: Path, tmp_path: Path) -> None:
    ended = run("train", csv, "--out", tmp_path / "model", *QUICK)
    assert ended.code == 0
    epoch = r"epoch \d of \d, the one with the highest validation macro-F1, 0\.\d{3}"
    saved = rf"saved in {tmp_path / 'model'}: {epoch}(; every epoch has collapsed attention or a constant label)?\n"
    assert re.search(saved, ended.out)
    assert "films.csv: 28 train, 4 validation (a tenth of the training texts)\n" in ended.err
    assert "that audit reads training texts" in ended.err
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "training_texts.safetensors",
    ]
    assert [p.name for p in tmp_path.iterdir()] == ["model"], "nothing else is left behind"


SOUND, COLLAPSED = {}, {"attention": {"collapsed": True}}
FEW, ASKED = {"small_data": True}, {}


@pytest.mark.parametrize(
    ("select", "text", "states", "saved", "sentence"),
    [
        ("best", {}, [SOUND, SOUND], 2, "epoch 2 of 2, the one with the highest validation macro-F1, 0.600"),
        (
            "best",
            {},
            [SOUND, COLLAPSED],
            1,
            "epoch 1 of 2, the one with the highest validation macro-F1 without collapsed attention or a constant "
            "label, 0.500",
        ),
        (
            "best",
            {},
            [COLLAPSED, COLLAPSED],
            2,
            "epoch 2 of 2, the one with the highest validation macro-F1, 0.600; every epoch has collapsed attention "
            "or a constant label",
        ),
        (
            "last",
            FEW,
            [SOUND, SOUND],
            2,
            "epoch 2 of 2, the last one: the validation texts are too few to select an epoch",
        ),
        ("last", ASKED, [COLLAPSED, SOUND], 2, "epoch 2 of 2, the last one: because select=last"),
        (
            "last",
            FEW,
            [SOUND, COLLAPSED],
            1,
            "epoch 1 of 2, the last one without collapsed attention or a constant label",
        ),
    ],
)
def test_train_names_the_saved_epoch_and_why_it_is_saved(
    select: str, text: dict[str, bool], states: list[dict[str, Any]], saved: int, sentence: str
) -> None:
    teacher = [{"stage": "teacher", "epoch": epoch, "macro-f1": 0.9} for epoch in (1, 2, 3)]
    student = [
        {"stage": "student", "epoch": i + 1, "macro-f1": 0.5 + i / 10, **state} for i, state in enumerate(states)
    ]
    description = SimpleNamespace(
        training={"select": select}, text=text, history=teacher + student, best_epoch=student[saved - 1]
    )
    assert _saved_epoch(description) == sentence


def test_an_epoch_that_the_technique_selects_is_not_called_the_best() -> None:
    history = [{"stage": "student", "epoch": epoch, "macro-f1": score} for epoch, score in ((1, 0.9), (2, 0.8))]
    description = SimpleNamespace(training={"select": "best"}, text={}, history=history, best_epoch=history[1])
    assert _saved_epoch(description) == "epoch 2 of 2, the last one"


def test_the_next_audit_of_train_is_a_complete_command(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"a {word} film {i},{word},{word}" for i in range(15) for word in ("bad", "good")]
    (tmp_path / "my films.csv").write_text("\n".join(["message,the outcome,why", *rows]))
    columns = ("--text", "message", "--label", "the outcome", "--rationales", "why")
    share = ("--test-share", "0.2", "--test-out", "held out.csv")
    ended = run("train", "my films.csv", "--out", "model", *columns, *share, *QUICK)
    assert ended.code == 0, ended.err
    assert "my films.csv: 21 train, 3 validation (a tenth of the training texts), 6 test\n" in ended.err
    (command,) = [line for line in ended.err.splitlines() if line.startswith("next:  steadygaze audit ")]
    words = shlex.split(command)[2:]
    assert words == ["audit", "model", "--data", "held out.csv", *columns, "--html", "audit.html"]
    audited = run(*words, "--sample", "1", "--device", "cpu")
    assert audited.code == 0, audited.err
    assert "none of the 6 audited texts" in (tmp_path / "audit.html").read_text()


@pytest.mark.slow
def test_the_next_audit_reads_the_data_as_train_did(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"a {word} film {i},{word}" for i in range(15) for word in ("bad", "good")]
    (tmp_path / "films.csv").write_text("\n".join(["text,label", *rows[:9], ",good", "a film,", *rows[9:], ""]))
    advice = "that audit reads training texts, so its scores are optimistic: add {}--test-out held-out.csv to train"
    for out, share, missing in (("a", (), "--test-share 0.2 "), ("b", ("--test-share", "0.2"), "")):
        ended = run("train", "films.csv", "--out", out, "--drop-empty", *share, *QUICK)
        assert "empty text: 1 left out; no label: 1 left out\n" in ended.err
        assert advice.format(missing) in ended.err.splitlines()
    (command,) = [line for line in ended.err.splitlines() if line.startswith("next:  steadygaze audit ")]
    assert command == "next:  steadygaze audit b --data films.csv --drop-empty --html audit.html"
    audited = run(*shlex.split(command)[2:], "--sample", "1", "--device", "cpu")
    assert audited.code == 0, audited.err
    assert "films.csv: empty text: 1 left out; no label: 1 left out\n" in audited.err


def test_train_checks_human_rationales_and_does_not_use_them(run: Run, tmp_path: Path) -> None:
    rows = [f"a {word} film {i},{word},{word}" for i in range(15) for word in ("bad", "good")]
    (tmp_path / "films.csv").write_text("\n".join(["text,label,why", *rows]))
    (tmp_path / "wrong.csv").write_text("\n".join(["text,label,why", *rows, "a bad film,bad,dull"]))
    for name, more in (("without", []), ("with", ["--rationales", "why"])):
        assert run("train", tmp_path / "films.csv", "--out", tmp_path / name, *QUICK, *more).code == 0
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("without", "with")]
    assert weights[0] == weights[1]
    ended = run("train", tmp_path / "wrong.csv", "--out", tmp_path / "m", *QUICK, "--rationales", "why")
    assert (ended.code, "row 32" in ended.err) == (2, True), ended.err
    assert "not used in training" in " ".join(run("train", "--help").out.replace("│", " ").split())


def test_train_reports_the_share_of_training_tokens_with_a_vector(run: Run, csv: Path, tmp_path: Path) -> None:
    """The file has one word only, so that the share is low and the command warns."""
    vectors, model = tmp_path / "v.txt", tmp_path / "m"
    vectors.write_text("it 1 0\n", encoding="utf-8")
    ended = run("train", csv, "--out", model, *QUICK, "--vectors", vectors)
    share = json.loads((model / "config.json").read_text(encoding="utf-8"))["token_coverage"]
    assert 0 < share < 0.8
    assert f"{percent(share, 1)} of the tokens in the training texts have a vector: low" in ended.out
    assert f"only {percent(share)} of the tokens in the training texts have a vector in v.txt" in " ".join(
        ended.err.split()
    )
    assert f"| training tokens with a vector in `v.txt` | {percent(share, 1)} |" in (model / "README.md").read_text(
        "utf-8"
    )
    again = run("train", csv, "--out", model, *QUICK, "--vectors", vectors, "--replace", "--json")
    assert json.loads(again.out)["token_coverage"] == share


@pytest.mark.slow
def test_json_is_all_there_is_on_standard_output(run: Run, csv: Path, model: Path, tmp_path: Path) -> None:
    trained = json.loads(run("train", csv, "--out", tmp_path / "m", *QUICK, "--json").out)
    assert trained["classes"] == ["bad", "good"]
    assert trained["history"][0]["epoch"] == 1
    predicted = [json.loads(line) for line in run("predict", model, "I loved it", "Awful", "--json").out.splitlines()]
    assert [set(record) for record in predicted] == [{"text", "label", "probabilities", "health"}] * 2
    assert sum(predicted[0]["probabilities"].values()) == pytest.approx(1)
    (explained,) = [json.loads(line) for line in run("explain", model, "Slow, but fine!", "--json").out.splitlines()]
    assert explained["tokens"] == ["Slow", ",", "but", "fine", "!"]
    assert sum(explained["weights"]) == pytest.approx(1)
    assert "vanilla" in {row["name"] for row in json.loads(run("list", "techniques", "--json").out)}


def test_predict_prints_a_line_per_text(run: Run, model: Path) -> None:
    lines = run("predict", model, "I loved it", "two\nlines").out.splitlines()
    assert len(lines) == 2
    label, probability, text = lines[1].split("\t")
    assert label in {"good", "bad"}
    assert 0.5 <= float(probability) <= 1
    assert text == "two lines"


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".txt"])
def test_explain_reads_a_file_in_order(run: Run, model: Path, tmp_path: Path, suffix: str) -> None:
    texts = ["short", "a somewhat longer text than that", "mid length one"]
    file = tmp_path / f"texts{suffix}"
    lines = [json.dumps({"text": text}) for text in texts] if suffix == ".jsonl" else texts
    file.write_text("\n".join(lines if suffix in {".jsonl", ".txt"} else ["text", *lines]) + "\n")
    results = [json.loads(line)["text"] for line in run("explain", model, "--file", file, "--json").out.splitlines()]
    assert results == texts


def test_explain_writes_a_page_in_which_a_script_is_shown_and_not_run(run: Run, model: Path, tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    ended = run("explain", model, "fine <script>alert(1)</script> film", "--html", page)
    assert ended.code == 0
    assert "<script" not in page.read_text()
    assert "&lt;" in page.read_text()


def test_explain_draws_words_in_the_terminal(run: Run, model: Path) -> None:
    assert "Awful" in run("explain", model, "Awful film").out


@pytest.mark.parametrize("registry", ["corpora", "encoders", "techniques", "explainers", "measures"])
def test_list_shows_what_is_registered(run: Run, registry: str) -> None:
    shown = run("list", registry, "--verbose").out
    assert all(row["name"] in shown for row in list_registry(registry))


def test_what_training_fills_in_is_no_setting_to_choose() -> None:
    """The costs of rnp and three-player, the averages of hardkuma."""
    rows = {row["name"]: {field["name"] for field in row["settings"]} for row in list_registry("techniques")}
    filled = {name: {*getattr(kind, "filled", ())} for name, kind in TECHNIQUES.items()}
    assert set().union(*filled.values()) == {"costs", "averages"}
    for name, kind in TECHNIQUES.items():
        assert rows[name] == {*field_names(kind)} - filled[name]


def test_version_and_help(run: Run) -> None:
    assert run("--version").out.startswith("steadygaze ")
    shown = run("train", "--help").out
    assert all(option in shown for option in ("--data-dir", "--device", "--batch-size", "--seed", "--json"))


BAD = {
    "missing file": (["train", "nowhere.csv"], "nowhere.csv"),
    "unknown corpus": (["train", "sst3"], "did you mean 'sst2'"),
    "missing column": (["train", "CSV", "--text", "txt"], "'text'"),
    "missing label column": (["train", "CSV", "--label", "lable"], "'label'"),
    "unknown technique": (["train", "CSV", "--technique", "vanila"], "did you mean 'vanilla'"),
    "unknown encoder": (["train", "CSV", "--encoder", "bilsm"], "did you mean 'bilstm'"),
    "unknown setting": (["train", "CSV", "--set", "hiden=3"], "did you mean 'hidden'"),
    "setting out of range": (["train", "CSV", "--set", "dropout=2"], "'dropout'"),
    "setting without value": (["train", "CSV", "--set", "dropout"], "key=value"),
    "unknown device": (["train", "CSV", "--device", "gpu"], "device"),
    "missing vectors": (["train", "CSV", "--vectors", "no.txt"], "no.txt"),
    "empty file": (["train", "EMPTY"], "empty"),
    "one class": (["train", "ONE"], "class"),
    "empty text": (["train", "BLANK"], "row 3"),
    "missing label": (["train", "NOLABEL"], "row 3"),
    "fractions": (["train", "FRACTIONS"], "regression"),
    "not UTF-8": (["train", "LATIN"], "UTF-8"),
}
FILES = {
    "EMPTY": b"",
    "ONE": b"text,label\na b,x\nc d,x\n",
    "BLANK": b"text,label\na b,x\n  ,y\n",
    "NOLABEL": b"text,label\na b,x\nc d,\n",
    "FRACTIONS": b"text,label\na b,0.25\nc d,0.5\n",
    "LATIN": "text,label\ncafé,x\nthé,y\n".encode("latin-1"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_a_sentence_exit_code_2_and_nothing_written(
    run: Run, csv: Path, tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / f"{name}.csv").write_bytes(content)
    before = sorted(tmp_path.iterdir())
    arguments, hint = BAD[case]
    written = [str(csv) if a == "CSV" else f"{a}.csv" if a in FILES else a for a in arguments]
    ended = run(*written, "--out", tmp_path / "model", *QUICK)
    assert ended.code == 2
    assert hint in ended.err
    assert len(ended.err.strip().splitlines()) <= 4, "classes, sizes and a sentence, not a traceback"
    assert ended.out == ""
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(("name", "most"), [("hidden", 8192), ("dimension", 4096)])
def test_a_network_that_no_machine_could_hold_is_refused(
    run: Run, csv: Path, tmp_path: Path, name: str, most: int
) -> None:
    ended = run("train", csv, "--out", tmp_path / "m", "--set", f"{name}=1000000000")
    assert (ended.code, f"less than or equal to {most}" in ended.err) == (2, True), ended.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_ours_is_left_alone(run: Run, csv: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.txt").write_text("precious")
    ended = run("train", csv, "--out", tmp_path / "thesis", *QUICK)
    assert ended.code == 2
    assert "not a steadygaze model" in ended.err
    assert (tmp_path / "thesis" / "chapter1.txt").read_text() == "precious"


def test_an_interrupted_run_is_not_thrown_away(run: Run, csv: Path, tmp_path: Path) -> None:
    (tmp_path / "m.unfinished").mkdir()
    ended = run("train", csv, "--out", tmp_path / "m", *QUICK)
    assert ended.code == 2
    assert "--resume" in ended.err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["predict", "MODEL", "--text", "a film"], '--pair "A text." "Another."; --text names a column'),
        (["predict", "nowhere", "text"], "no such folder"),
        (["explain", "MODEL", "text", "--target", "goood"], "did you mean 'good'"),
        (["explain", "MODEL", "text", "--explainer", "attenton"], "did you mean 'attention'"),
        (["list", "encoder"], "unknown registry 'encoder': did you mean 'encoders'"),
        (["explain", "MODEL", "--file", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_bad_requests_to_a_model_get_a_sentence(run: Run, model: Path, arguments: list[str], hint: str) -> None:
    ended = run(*[str(model) if argument == "MODEL" else argument for argument in arguments])
    assert ended.code == 2
    assert hint in ended.err


def test_a_page_that_cannot_be_written_is_an_error_of_one_sentence(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    ended = run("explain", model, "text", "--html", tmp_path / "folder")
    assert ended.code == 2
    assert "folder" in ended.err
    assert run("train", "films.csv", "--out", "/").code == 2


def test_an_internal_error_exits_with_70_and_names_the_traceback(
    run: Run, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the dog ate it")

    monkeypatch.setattr(streaming, "predict", broken)
    ended = run("predict", model, "text")
    assert ended.code == 70
    log = Path(ended.err.split()[-1])
    assert "the dog ate it" in log.read_text()
    log.unlink()


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: 9 bytes")])
def test_too_little_memory_is_an_error_and_leaves_no_run(
    run: Run, csv: Path, tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    command = ["train", csv, "--out", tmp_path / "m", *QUICK, "--device", "cpu"]
    with monkeypatch.context() as patch:
        patch.setattr("steadygaze.training.technique_loop.TechniqueLoop.train_epoch", broken)
        ended = run(*command)
    assert (ended.code, "not enough memory" in ended.err) == (2, True), ended.err
    assert list(tmp_path.iterdir()) == []
    assert run(*command).code == 0


@pytest.mark.parametrize(
    "more", [[], ["--technique", "rnp", "--set", "granularity=token"]], ids=["vanilla", "filled in by training"]
)
def test_train_resume_on_a_finished_model_is_done(run: Run, csv: Path, tmp_path: Path, more: list[str]) -> None:
    command = ["train", csv, "--out", tmp_path / "m", *QUICK, *more]
    assert run(*command).code == 0
    before = (tmp_path / "m" / "model.safetensors").read_bytes()
    assert run(*command, "--resume").code == 0
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == before
    other = run(*command, "--resume", "--seed", "7")
    assert other.code == 2
    assert "another seed: 0, now 7; pass --replace" in other.err
    other = run("train", csv, "--out", tmp_path / "m", *QUICK, "--technique", "word-at", "--resume")
    assert "another technique: " in other.err
    assert "now 'word-at'" in other.err


def test_the_batch_size_is_the_requested_one(run: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def counted(data: object, rows: list[int]) -> object:
        sizes.append(len(rows))
        return collate(data, rows)

    monkeypatch.setattr("steadygaze.models.inference.collate", counted)
    monkeypatch.setattr("steadygaze.estimator.explain_texts.collate", counted)
    for verb in ("predict", "explain"):
        sizes.clear()
        assert run(verb, model, "one", "two", "three", "--batch-size", "2", "--json").code == 0
        assert sorted(sizes) == [1, 2]


def test_terminal_escapes_of_a_text_do_not_reach_the_terminal(run: Run, model: Path) -> None:
    shown = run("predict", model, "fine \x1b[31mred\x1b]0;title\x07 film").out
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_retraining_interrupted_in_its_first_epoch_does_not_hand_back_the_old_model(
    run: Run, csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("train", csv, "--out", tmp_path / "m", *QUICK).code == 0
    before = (tmp_path / "m" / "model.safetensors").read_bytes()

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("steadygaze.training.technique_loop.TechniqueLoop.train_epoch", interrupted)
        assert run("train", csv, "--out", tmp_path / "m", *QUICK, "--seed", "7", "--replace").code == 130
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == before, "the old model stands until the new is whole"
    assert run("train", csv, "--out", tmp_path / "m", *QUICK, "--seed", "7", "--resume").code == 0
    assert (tmp_path / "m" / "model.safetensors").read_bytes() != before


@pytest.mark.slow
def test_a_closed_pipe_is_not_an_error(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "many.txt"
    file.write_text("a text like any other\n" * 2000)
    command = f"{sys.executable} -m steadygaze predict {model} --file {file} --json | head -n 1"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert json.loads(ended.stdout)["text"] == "a text like any other"
    assert "Traceback" not in ended.stderr
    assert "internal error" not in ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_exits_with_its_code_and_leaves_a_resumable_run(
    csv: Path, tmp_path: Path, number: int, code: int
) -> None:
    out = tmp_path / "m"
    train = [sys.executable, "-m", "steadygaze", "train", str(csv), "--out", str(out), "--device", "cpu"]
    train += ["--encoder", "average", "--set", "hidden=8"]
    child = subprocess.Popen(
        [*train, "--epochs", "5000", "--set", "patience=5000"],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # a background job or nohup ignores some signals
    )
    try:
        while not (resumable_training.unfinished_folder(out) / "checkpoint.safetensors").exists():
            assert child.poll() is None
            time.sleep(0.02)
        child.send_signal(number)
        _, err = child.communicate(timeout=60)
    finally:
        child.kill()  # without the signal it would train for 5000 epochs
    assert child.returncode == code
    assert "--resume" in err
    assert "Traceback" not in err
    assert not out.exists()


def test_a_pair_is_refused_by_a_model_of_single_texts(run: Run, model: Path) -> None:
    for verb in ("predict", "explain"):
        ended = run(verb, model, "--pair", "fine film", "is it fine?")
        assert ended.code == 2
        assert "single texts" in ended.err
