"""steadygaze audit from the command line: a page, rationales that can be run again, and a gate."""

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest

import steadygaze as sg
from commands import Ended, run
from report.audited import VERDICTS, full_report
from steadygaze.auditing.audit_progress import AuditProgress
from steadygaze.cli import audit_and_verify
from steadygaze.core.atomic_files import exclusive
from steadygaze.data.planted.reviews import planted_reviews
from steadygaze.results import model_card
from steadygaze.results.advice import Advice


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model trained on a few reviews, and others in a file."""
    folder = tmp_path_factory.mktemp("audit")
    texts = planted_reviews(sizes=(160, 0, 0))["train"]
    clf = sg.TextClassifier(
        "average", epochs=12, seed=0, device="cpu", settings={"learning_rate": 0.05, "patience": 12, "dimension": 32}
    )
    clf.fit([e.text for e in texts[:120]], [e.label for e in texts[:120]])
    clf.save(folder / "model")
    rows = [f'"{e.text}",{e.label}' for e in texts[120:]]
    (folder / "held.csv").write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    (folder / "texts.csv").write_text("\n".join(["text", *(f'"{e.text}"' for e in texts[120:])]), encoding="utf-8")
    return folder


@pytest.fixture
def here(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, in the folder that we work in."""
    monkeypatch.chdir(made.parent)
    return made


@pytest.fixture
def command(capsys):
    """The command line, on the CPU."""
    return lambda *more: run(capsys, *more, "--device", "cpu")


@pytest.fixture
def audit(command, here):
    def run_audit_of(*more: str) -> Ended:
        small = ("--sample", "4", "--limit", "16")
        return command("audit", here / "model", "--data", here / "held.csv", *small, *more)

    return run_audit_of


@pytest.fixture
def canned(monkeypatch) -> None:
    """What is found was typed in: nothing is measured."""
    monkeypatch.setattr(audit_and_verify.LoadedAudit, "run", lambda *_: full_report(plots={}))


@pytest.mark.usefixtures("fewer_protocols")
def test_a_bundle_is_written_and_verified_in_any_folder(audit, command, here, tmp_path):
    ended = audit("--bundle", str(tmp_path / "bundle"), "--html", str(tmp_path / "page.html"), "--json")
    assert ended.code == 0, ended.err
    report = json.loads(ended.out)
    assert {row["measure"] for row in report["rows"]} >= {"accuracy", "comprehensiveness", "jensen-shannon/noise"}
    assert not report["notes"], "that a file without splits is all of it says nothing of what the model has seen"
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert command("audit", "--verify", str(tmp_path / "bundle")).code == 0
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(here / "model", elsewhere / "renamed")
    shutil.copy(here / "held.csv", elsewhere / "other.csv")
    moved = (str(elsewhere / "renamed"), "--data", str(elsewhere / "other.csv"))
    again = command("audit", *moved, "--verify", str(tmp_path / "bundle"))
    assert again.code == 0, again.out + again.err


@pytest.mark.sweep(keep=1)
@pytest.mark.usefixtures("fewer_protocols")
@pytest.mark.parametrize("pair", [False, True])
def test_the_audit_counts_training_texts(command, tmp_path, pair):
    lines = [
        {"text": f"a {word} film {i}", "label": word, "why": "a what ?"} for i in range(12) for word in ("bad", "good")
    ]
    kinds = ("--text", "text", "--text", "why") if pair else ()
    other = [{**line, "text": f"{line['text']} indeed"} for line in lines]
    for name, some in (("part", [*lines[:3], other[3]]), ("other", other[:4])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in some))
    texts = [(line["text"], line["why"]) if pair else line["text"] for line in lines]
    clf = sg.TextClassifier("average", epochs=1, device="cpu").fit(texts, [line["label"] for line in lines])
    clf.save(tmp_path / "model")

    def audited(*data: str) -> tuple[list[str], str]:
        ended = command("audit", tmp_path / "model", "--data", *data, *kinds, "--sample", "1", "--json")
        assert ended.code == 0, ended.err
        report = json.loads(ended.out)
        return [note["message"] for note in report["notes"] if "training" in note["code"]], report["facts"][
            "training texts"
        ]

    notes, fact = audited(tmp_path / "part.jsonl")
    assert [note.split(":")[0] for note in notes] == ["3 of 4 texts were training texts"]
    assert fact == "3 of the 4 audited texts"
    assert audited(tmp_path / "other.jsonl") == ([], "none of the 4 audited texts")


@pytest.mark.sweep(keep=1)
@pytest.mark.usefixtures("fewer_protocols")
@pytest.mark.parametrize(("split", "expected"), [("train", ["training-split"]), ("test", [])])
def test_a_training_split_is_named_if_the_training_texts_are_unknown(command, here, tmp_path, split, expected):
    data = ("--data", "planted-reviews:sizes=[16,8,8]", "--split", split, "--sample", "1", "--limit", "4")
    shutil.copytree(here / "model", model := tmp_path / "model")
    (model / "training_texts.safetensors").unlink()
    ended = command("audit", model, *data, "--json")
    assert ended.code == 0, ended.err
    assert [note["code"] for note in json.loads(ended.out)["notes"] if note["code"] == "training-split"] == expected


@pytest.mark.slow
@pytest.mark.usefixtures("fewer_protocols")
def test_several_explainers_have_verdicts_and_a_policy_requires_those_of_the_first(audit, command, tmp_path):
    two = ("--explainer", "attention", "--explainer", "leave-one-out")
    ended = audit(*two, "--bundle", tmp_path / "bundle", "--card", "--json")
    assert ended.code == 0, ended.err
    report = json.loads(ended.out)
    answers = {name: [verdict["answer"] for verdict in items] for name, items in report["other_verdicts"].items()}
    assert list(answers) == ["leave-one-out"]
    assert len(answers["leave-one-out"]) == len(report["verdicts"])
    assert report["recommendation"]["explainer"] in ("attention", "leave-one-out", None)
    ended = command("audit", "--verify", tmp_path / "bundle")
    assert ended.code == 0, ended.out
    policy = tmp_path / "policy.toml"
    others = [f'"{answer}"' for answer in ("yes", "no", "undecided", "not measured")]
    own = report["verdicts"][0]["answer"]
    for allowed, code in (([f'"{own}"'], 0), ([answer for answer in others if answer != f'"{own}"'], 1)):
        policy.write_text(f'[[verdict]]\nname = "stability"\nanswer = [{", ".join(allowed)}]\n')
        assert audit(*two, "--policy", policy).code == code
    assert "attention:" in [line.strip() for line in audit(*two).out.splitlines()], "the verdicts have their explainer"


@pytest.mark.slow
@pytest.mark.usefixtures("fewer_protocols")
def test_another_model_than_that_of_the_bundle_is_reported(audit, command, here, tmp_path):
    audit("--bundle", str(tmp_path / "bundle"))
    other = sg.load(here / "model", device="cpu")
    other.stored_.model.decoder.output.bias.data += 0.5
    other.save(tmp_path / "other")
    ended = command("audit", str(tmp_path / "other"), "--verify", str(tmp_path / "bundle"))
    assert ended.code == 1
    assert "the model: was" in ended.out


def test_a_gate_opens_and_shuts(audit, canned, tmp_path):
    assert audit("--require", "accuracy>=0").code == 0
    shut = audit("--require", "accuracy>1", "--require", "jensen-shannon/seeds<=1")
    assert shut.code == 1
    assert "accuracy is" in shut.err
    assert "jensen-shannon/seeds" in shut.err  # a verdict that was not measured does not pass
    policy = tmp_path / "policy.toml"
    policy.write_text('[[verdict]]\nname = "seed-consistency"\nanswer = ["yes"]\n')
    assert audit("--policy", str(policy)).code == 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--require", "acuracy>=1"), "accuracy"),
        (("--require", "accuracy"), "a number"),
        (("--require", "jensen-shannon<=0.02"), "the rows of jensen-shannon are jensen-shannon/noise, "),
        (("--html", "."), "is a folder"),
        (("--explainer", "attentoin"), "attention"),
        (("--split", "test"), "no split 'test'"),
        (("--label", "verdict"), "verdict"),
        (("--other-seed", "nowhere/at/all"), "nowhere/at/all"),
    ],
)
def test_wrong_options_are_errors_before_any_work(audit, more, message):
    ended = audit(*more)
    assert ended.code == 2, ended.err
    assert message in ended.err


def test_a_model_or_data_or_a_bundle_is_required(command):
    ended = command("audit")
    assert ended.code == 2
    assert "audit needs a model and data" in ended.err


def test_the_card_of_a_model_of_ours_gets_the_numbers_and_the_model_stays_the_same(audit, canned, here):
    card = here / "model" / "README.md"
    card.write_text(before := "My own words.\n")
    weights = {name: (here / "model" / name).read_bytes() for name in ("config.json", "model.safetensors")}
    audit()
    assert card.read_text() == before
    assert "the part about the audit" in audit("--card").err
    after = card.read_text()
    assert "- **Stability under rewording**: undecided." in after
    assert after.startswith(before)
    audit("--card")
    assert card.read_text() == after
    assert {name: (here / "model" / name).read_bytes() for name in weights} == weights


def test_a_card_of_a_model_that_has_none_is_refused_before_the_audit(command, here):
    Path("flip.py").write_text("def half(texts):\n    return [[0.5, 0.5] for _ in texts]\n")
    ended = command("audit", "flip:half", "--data", here / "held.csv", "--classes", "negative,positive", "--card")
    assert ended.code == 2
    assert "--card writes into the card of a model of train, which flip:half is not" in ended.err


def test_a_folder_that_cannot_be_written_to_costs_the_card_and_nothing_else(audit, canned, here, monkeypatch):
    def refused(path: Path, text: str) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(model_card, "write_text", refused)
    ended = audit("--card")
    assert ended.code == 0
    assert "README.md is unchanged" in ended.err


def test_verifying_refuses_settings_that_it_would_ignore(audit, command, canned, tmp_path):
    audit("--bundle", str(tmp_path / "bundle"))
    ended = command("audit", "--verify", str(tmp_path / "bundle"), "--seed", "1", "--explainer", "lime")
    assert ended.code == 2
    assert "--verify uses the settings of the bundle: leave out --seed, --explainer" in ended.err


@pytest.mark.slow
def test_verifying_writes_nothing(audit, command, canned, here, tmp_path):
    audit("--bundle", str(tmp_path / "bundle"))
    card = here / "model" / "README.md"
    card.write_text("As it is.")
    command("audit", "--verify", str(tmp_path / "bundle"))
    assert card.read_text() == "As it is."


@pytest.mark.usefixtures("fewer_protocols")
def test_texts_without_labels_are_audited_and_a_line_reports_it(command, here):
    arguments = ("audit", here / "model", "--data", here / "texts.csv", "--sample", "4", "--limit", "16")
    ended = command(*arguments, "--json")
    assert ended.code == 0, ended.err
    assert "runs without labels" in ended.err
    accuracy = next(row for row in json.loads(ended.out)["rows"] if row["measure"] == "accuracy")
    assert accuracy["note"] == "not applicable, because the texts have no labels"
    assert command(*arguments, "--label", "label").code == 2


def test_a_bundle_is_replaced_only_by_the_same_model_and_texts(audit, command, canned, here, tmp_path):
    out = str(tmp_path / "bundle")
    assert f"written: {out}" in audit("--bundle", out).err
    assert f"replaced: {out}" in audit("--bundle", out).err
    ended = audit("--bundle", out, "--limit", "5")
    assert ended.code == 2
    assert "is an audit bundle of other texts ('held.csv') and is left alone" in ended.err
    other = sg.load(here / "model", device="cpu")
    other.stored_.model.decoder.output.bias.data += 0.5
    other.save(tmp_path / "other")
    ended = command("audit", tmp_path / "other", "--data", here / "held.csv", "--limit", "16", "--bundle", out)
    assert ended.code == 2
    assert "is an audit bundle of another model ('model')" in ended.err


def test_two_audits_never_write_one_bundle(audit, tmp_path):
    out = tmp_path / "bundle"
    out.mkdir()
    with exclusive(out, "auditing"):
        ended = audit("--bundle", str(out))
    assert (ended.code, f"process {os.getpid()} is auditing in {out}" in ended.err) == (2, True)
    assert list(out.iterdir()) == []


@pytest.mark.slow
def test_a_page_gives_way_to_a_page_alone(audit, canned, tmp_path):
    page = tmp_path / "page.html"
    assert f"written: {page}" in audit("--html", str(page)).err
    assert f"replaced: {page}" in audit("--html", str(page)).err
    page.write_text("<!doctype html><p>Mine.")
    ended = audit("--html", str(page))
    assert ended.code == 2
    assert "exists: --replace overwrites it" in ended.err
    assert page.read_text() == "<!doctype html><p>Mine."
    assert f"replaced: {page}" in audit("--html", str(page), "--replace").err


@pytest.mark.slow
def test_a_bundle_records_whether_the_gate_was_passed(audit, command, canned, tmp_path):
    for rule, passed in (("accuracy>=0.9", True), ("accuracy>=0.99", False)):
        out = tmp_path / str(passed)
        ended = audit("--bundle", str(out), "--require", rule)
        gate = json.loads((out / "manifest.json").read_text())["gate"]
        assert (ended.code, gate["passed"]) == (0 if passed else 1, passed)
        assert gate["failures"] == ([] if passed else ["accuracy is 0.913; at least 0.99 was required."])
        assert command("audit", "--verify", str(out)).code == 0  # it did not pass then, and does not now


def test_a_bundle_that_was_tampered_with_ends_with_code_one_and_names_the_file(audit, command, canned, tmp_path):
    audit("--bundle", str(tmp_path / "bundle"))
    rows = tmp_path / "bundle" / "rows.jsonl"
    rows.write_text(rows.read_text().replace("0.9125", "0.9999"))
    ended = command("audit", "--verify", str(tmp_path / "bundle"), "--json")
    assert ended.code == 1
    assert "rows.jsonl was changed after it was written" in json.loads(ended.out)["differences"][0]
    assert "differ in 1 way" in ended.err
    assert "requirement" not in ended.err
    rows.unlink()
    assert command("audit", "--verify", str(tmp_path / "bundle")).code == 1
    (tmp_path / "bundle" / "manifest.json").unlink()
    assert command("audit", "--verify", str(tmp_path / "bundle")).code == 2  # no rationales at all


def test_no_folder_of_this_machine_is_in_the_rationales(audit, canned, here, tmp_path):
    audit("--bundle", str(tmp_path / "bundle"))
    manifest = json.loads((tmp_path / "bundle" / "manifest.json").read_text())
    near = f"../{here.name}"
    assert (manifest["settings"]["model"], manifest["settings"]["data"]) == (f"{near}/model", f"{near}/held.csv")
    message = ["steadygaze", "audit", f"{near}/model", "--data", f"{near}/held.csv", "--limit", "16", "--sample", "4"]
    assert manifest["command"] == message
    for file in (tmp_path / "bundle").iterdir():
        assert os.fsencode(here.parent) not in file.read_bytes()


@pytest.mark.slow
def test_a_model_or_data_that_moved_is_an_error_with_the_command(audit, command, canned, here, tmp_path):
    audit("--bundle", str(tmp_path / "bundle"))
    moved = tmp_path / "far" / "rationales"
    shutil.move(tmp_path / "bundle", moved)
    ended = command("audit", "--verify", str(moved))
    assert ended.code == 2
    assert f"not found next to the bundle, nor in the working folder: model ../{here.name}/model, data " in ended.err
    assert f"steadygaze audit FOLDER/model --data FOLDER/held.csv --verify {moved}" in ended.err
    ended = command("audit", here / "model", "--verify", str(moved))
    assert f"steadygaze audit {here / 'model'} --data FOLDER/held.csv --verify {moved}" in ended.err
    assert command("audit", here / "model", "--data", here / "held.csv", "--verify", str(moved)).code == 0


def test_an_interrupted_audit_reports_that_nothing_was_written(audit, monkeypatch, here, tmp_path):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(audit_and_verify.LoadedAudit, "run", stopped)
    card = (here / "model" / "README.md").read_bytes()
    ended = audit("--bundle", str(tmp_path / "bundle"), "--html", str(tmp_path / "page.html"))
    assert ended.code == 130
    assert "interrupted; nothing was written" in ended.err
    assert list(tmp_path.iterdir()) == []
    assert (here / "model" / "README.md").read_bytes() == card


@pytest.fixture
def default_signals():
    """A background job or nohup ignores some signals."""
    defaults = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    before = {number: signal.signal(number, handler) for number, handler in defaults.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.sweep(keep=1)
@pytest.mark.usefixtures("fewer_protocols")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_leaves_an_incomplete_page(audit, monkeypatch, tmp_path, number, code, default_signals):
    on_progress = AuditProgress.on_progress

    def send_signal(self, task, done, total):
        on_progress(self, task, done, total)
        if task.startswith("words erased"):
            os.kill(os.getpid(), number)

    monkeypatch.setattr(AuditProgress, "on_progress", send_signal)
    page, before = tmp_path / "page.html", signal.getsignal(number)
    ended = audit("--bundle", str(tmp_path / "bundle"), "--html", str(page))
    assert ended.code == code
    assert f"interrupted; written: {page}, an incomplete page with " in ended.err
    assert "Explanation audit (incomplete)" in page.read_text()
    assert list(tmp_path.iterdir()) == [page]
    assert signal.getsignal(number) is before


def test_people_see_the_verdicts_and_what_they_rest_on_and_all_numbers_on_request(audit, canned, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    short, full = audit().out, audit("-v").out
    assert short.index("Stability") < short.index("accuracy")
    assert "comprehensiveness/above-random" in short
    assert "normalized-entropy" not in short
    assert "11 more numbers" in short
    assert "normalized-entropy" in full


@pytest.mark.usefixtures("fewer_protocols")
def test_complete_commands_of_the_advice_are_the_last_lines(audit, here, monkeypatch, tmp_path):
    commands = "steadygaze audit ./model --limit 99", "steadygaze train TRAINING_DATA --set synonyms=TABLE"
    advice = tuple(Advice(command=tuple(command.split())) for command in commands)
    report = full_report(plots={}, verdicts=(replace(VERDICTS[0], advice=advice),) * 2)
    monkeypatch.setattr(audit_and_verify.LoadedAudit, "run", lambda *_: report)
    lines = [line for line in audit().err.splitlines() if line.startswith("next:")]
    assert lines == ["next:  steadygaze audit ./model --limit 99"]
    assert "next:" not in audit("--json").err
    monkeypatch.chdir(tmp_path)  # the page does not have the folders of the model and the data
    assert "next:" not in audit().err


def test_a_model_that_gives_every_text_the_same_label_is_named_before_the_verdicts(command, here, tmp_path):
    constant = sg.load(here / "model", device="cpu")
    constant.stored_.model.decoder.output.bias.data[0] += 100
    constant.save(tmp_path / "constant")
    ended = command("audit", tmp_path / "constant", "--data", here / "held.csv", "--sample", "2", "--limit", "16")
    assert ended.err.count("! The model predicts the label") == 1
    assert "predicts the label" not in ended.out
