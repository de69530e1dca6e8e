"""References and teachers that are given, kept and found again; settings and files that are refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from estimator.tiny import LABELS, PAIRS, SMALL, SUBJECTS, TEXTS, tiny
from steadygaze import UserError, cli
from steadygaze.fitting import Keeping, fit
from steadygaze.inputs import read_split
from steadygaze.order import order
from steadygaze.train.progress import Silent
from train.toys import Recorder, weights

THREE = ["pos", "neg", "odd"]
STUDENTS = ["seat", "anchored", "consensus"]
FEW = {"teachers": 2}


def student(technique="anchored", **changes):
    extra = FEW if technique == "consensus" else {}
    settings = {**SMALL, **extra, **changes.pop("settings", {})}
    return tiny(technique=technique, settings=settings, **changes)


def bits(clf):
    return weights(clf.stored_.model)


# --- a reference that is given


@pytest.mark.parametrize("technique", ["seat", "anchored"])
def test_a_given_reference_makes_the_same_student_as_one_trained_by_the_run(technique):
    """The reference of a run of seed 3 is a vanilla model of seed 3."""
    own = student(technique, seed=3, epochs=2).fit(TEXTS, LABELS)
    reference = tiny(seed=3, epochs=2).fit(TEXTS, LABELS)
    given = student(technique, seed=3, epochs=2).fit(TEXTS, LABELS, reference=reference)
    assert bits(given) == bits(own)
    assert [record["stage"] for record in given.history_] == ["student"] * 2
    other = tiny(seed=4, epochs=2).fit(TEXTS, LABELS)
    assert bits(student(technique, seed=3, epochs=2).fit(TEXTS, LABELS, reference=other)) != bits(own)


def test_given_teachers_make_the_same_student_as_those_trained_by_the_run():
    own = student("consensus", seed=1).fit(TEXTS, LABELS)
    teachers = [tiny(seed=seed).fit(TEXTS, LABELS) for seed in (2, 3)]  # seed × teachers, and the next
    given = student("consensus", seed=1).fit(TEXTS, LABELS, reference=teachers)
    assert bits(given) == bits(own)
    assert bits(student("consensus", seed=1).fit(TEXTS, LABELS, reference=teachers[::-1])) != bits(own)


def test_a_reference_is_left_as_it_was():
    reference = tiny().fit(TEXTS, LABELS)
    before, said = bits(reference), reference.predict_proba(TEXTS)
    student().fit(TEXTS, LABELS, reference=reference)
    assert bits(reference) == before
    assert np.array_equal(reference.predict_proba(TEXTS), said)
    assert all(parameter.requires_grad for parameter in reference.stored_.model.parameters())


OTHER_TEXTS = [text.replace("fine", "grand") for text in TEXTS]
FOREIGN = {
    "vocabulary": (lambda: tiny().fit(OTHER_TEXTS, LABELS), "has another vocabulary"),
    "min_df": (lambda: tiny(settings={**SMALL, "min_df": 3}).fit(TEXTS, LABELS), "has another vocabulary"),
    "labels": (lambda: tiny().fit(TEXTS, ["good"] * 12 + ["bad"] * 12), "knows the labels"),
    "classes": (lambda: tiny().fit(TEXTS, [THREE[i % 3] for i in range(24)]), "knows the labels"),
    "encoder": (lambda: tiny("lstm").fit(TEXTS, LABELS), "has another encoder"),
    "shape": (lambda: tiny(settings={**SMALL, "hidden": 5}).fit(TEXTS, LABELS), "has another architecture"),
    "max_length": (lambda: tiny(max_length=50).fit(TEXTS, LABELS), "vocabulary|max_length"),
    "pair": (lambda: tiny().fit(PAIRS, LABELS), "has another"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_reference_of_another_kind_is_refused_in_a_sentence(what):
    make, message = FOREIGN[what]
    with pytest.raises(UserError, match=f"the reference given .*({message})"):
        student().fit(TEXTS, LABELS, reference=make())


@pytest.mark.parametrize(
    ("technique", "count", "message"),
    [
        ("vanilla", 1, "vanilla takes none as reference or teachers, found 1"),
        ("word-at", 1, "word-at takes none"),
        ("seat", 2, "seat takes 1 as reference or teachers, found 2"),
        ("anchored", 3, "anchored takes 1 .*found 3"),
        ("consensus", 1, "consensus takes 2 .*found 1"),
        ("consensus", 3, "consensus takes 2 .*found 3"),
    ],
)
def test_another_number_of_models_than_the_technique_takes_is_refused(technique, count, message):
    reference = tiny().fit(TEXTS, LABELS)
    clf = tiny(technique=technique) if technique in ("vanilla", "word-at") else student(technique)
    with pytest.raises(UserError, match=message):
        clf.fit(TEXTS, LABELS, reference=[reference] * count)


def test_seat_as_released_takes_no_reference():
    with pytest.raises(UserError, match="seat takes none"):
        student("seat", settings={"variant": "released"}).fit(TEXTS, LABELS, reference=tiny().fit(TEXTS, LABELS))


@pytest.mark.parametrize("wrong", ["model/", 3, object()], ids=str)
def test_what_is_no_classifier_is_no_reference(wrong):
    with pytest.raises(UserError, match="reference must be a fitted TextClassifier"):
        student().fit(TEXTS, LABELS, reference=[wrong])


# --- the command line


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """Texts as a file, and saved models of several kinds."""
    folder = tmp_path_factory.mktemp("given")
    rows = "".join(f'"{text}",{label}\n' for text, label in zip(TEXTS, LABELS, strict=True))
    (folder / "films.csv").write_text("text,label\n" + rows, encoding="utf-8")
    tiny().fit(TEXTS, LABELS, validation=None).save(folder / "reference")
    for what in ("vocabulary", "labels", "encoder"):
        FOREIGN[what][0]().save(folder / what)
    return folder


QUICK = ["--epochs", "1", "--set", "hidden=4", "--set", "dimension=6", "--device", "cpu"]


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main([str(argument) for argument in arguments])
    return int(ended.value.code or 0), *capsys.readouterr()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["vocabulary"], "has another vocabulary"),
        (["labels"], "knows the labels"),
        (["encoder"], "has another encoder"),
        (["reference", "reference"], "anchored takes 1 as reference or teachers, found 2"),
        (["absent"], "absent"),
    ],
)
def test_a_wrong_reference_on_the_command_line_is_one_sentence_code_2_and_nothing_written(
    capsys, files, tmp_path, given, message
):
    options = [part for name in given for part in ("--from", files / name)]
    command = ["train", files / "films.csv", "--out", tmp_path / "m", "--technique", "anchored", *QUICK, *options]
    code, out, err = run(capsys, *command)
    assert code == 2
    assert out == ""
    assert message in " ".join(err.split())
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())


def test_a_reference_on_the_command_line_is_used(capsys, files, tmp_path):
    command = ["train", files / "films.csv", "--technique", "anchored", *QUICK, "--json", "--quiet"]
    code, out, _ = run(capsys, *command, "--out", tmp_path / "m", "--from", files / "reference")
    assert code == 0
    assert {record["stage"] for record in json.loads(out)["history"]} == {"student"}
    assert [path.name for path in tmp_path.iterdir()] == ["m"]  # nothing was trained that could be kept


def test_teachers_are_kept_by_train_and_found_by_the_next_student(capsys, files, tmp_path):
    """Of the second run only the student's epochs are run; two students of one group, then the same one again."""
    command = ["train", files / "films.csv", "--technique", "consensus", "--set", "teachers=2", *QUICK]
    command += ["--set", "first_teacher=5", "--quiet", "--json"]
    assert run(capsys, *command, "--out", tmp_path / "one")[0] == 0
    kept = {path.name: path.read_bytes() for path in (tmp_path / "teachers").iterdir()}
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "teachers").iterdir()}
    assert len(kept) == 2
    assert run(capsys, *command, "--out", tmp_path / "two", "--seed", "1")[0] == 0
    assert run(capsys, *command, "--out", tmp_path / "again")[0] == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "teachers").iterdir()} == kept
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    one, two, again = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two", "again"))
    assert one == again
    assert one != two


def test_a_folder_of_teachers_can_be_named(capsys, files, tmp_path):
    command = ["train", files / "films.csv", "--technique", "seat", *QUICK, "--quiet"]
    assert run(capsys, *command, "--out", tmp_path / "m", "--teachers", tmp_path / "kept")[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "m"]
    assert len(list((tmp_path / "kept").iterdir())) == 1


@pytest.mark.parametrize("technique", STUDENTS)
def test_a_kept_teacher_spares_its_epochs_and_the_student_is_the_same(technique, tmp_path):
    def trained(seed=0, **changes):
        watcher = Recorder()
        ordered = order(student(technique, seed=seed, epochs=2, **changes).get_params())
        stored = fit(ordered, read_split(TEXTS, LABELS), None, watcher, Keeping(teachers=tmp_path / "teachers"))
        return weights(stored.model), [record["stage"] for record in watcher.epochs]

    first, ran = trained()
    number = 2 if technique == "consensus" else 1
    assert len(ran) == 2 * number + 2
    second, ran = trained()
    assert second == first
    assert ran == ["student"] * 2
    assert len(trained(settings={"k": 3})[1]) == 2  # another student of the same teachers
    assert len(trained(settings={"learning_rate": 0.01})[1]) == 2 * number + 2  # other teachers
    assert len(trained(seed=7)[1]) == 2 * number + 2


# --- settings, texts and files at the edge


@pytest.mark.parametrize(
    ("technique", "setting", "value"),
    [
        ("attention-at", "epsilon", -1),
        ("attention-at", "weight", -0.1),
        ("attention-rp", "epsilon", "far"),
        ("attention-iat", "variant", "printed"),
        ("word-at", "epsilon", 101),
        ("word-iat", "neighbours", 0),
        ("seat", "radius", 0),
        ("seat", "k", 0),
        ("seat", "stability", -1),
        ("seat", "overlap", float("nan")),
        ("seat", "solver", "guess"),
        ("seat", "norm", "l1"),
        ("seat", "steps", 0),
        ("anchored", "radius", 11),
        ("anchored", "share", 1.5),
        ("anchored", "noise_radius", 0),
        ("anchored", "closeness", -1),
        ("consensus", "teachers", 0),
        ("consensus", "teachers", 1.5),
        ("consensus", "first_teacher", -1),
        ("consensus", "teacher", "seat"),
    ],
)
def test_a_setting_out_of_range_is_refused_by_its_name(technique, setting, value):
    with pytest.raises(UserError, match=f"setting '{setting}'"):
        student(technique, settings={setting: value}).fit(TEXTS, LABELS)


def test_the_command_line_refuses_it_before_it_reads_anything(capsys, tmp_path):
    command = ["train", tmp_path / "absent.csv", "--out", tmp_path / "m", "--technique", "seat", "--set", "radius=-1"]
    code, _, err = run(capsys, *command)
    assert code == 2
    assert "radius" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("technique", [*STUDENTS, "word-iat", "attention-iat"])
def test_texts_of_one_word_and_texts_shorter_than_k_are_trained_on(technique):
    short = ["good", "bad", "good film", "bad plot"] * 6
    extra = {} if technique in ("word-iat", "attention-iat") else {"k": 50}
    clf = student(technique, settings=extra).fit(short, ["pos", "neg"] * 12)
    assert np.isfinite(clf.predict_proba(short)).all()


def three():
    return [*TEXTS, *[f"an odd {s} indeed" for s in SUBJECTS]], [*LABELS, *["odd"] * 12]


def test_three_classes_are_for_pairs_and_pgd_and_exact_says_so():
    for solver in ("pairs", "pgd"):
        clf = student("seat", settings={"solver": solver}).fit(*three())
        assert np.isfinite(clf.predict_proba(TEXTS)).all()
    with pytest.raises(UserError, match="solver=exact is for two classes, found 3: use solver=pairs, or pgd"):
        student("seat", settings={"solver": "exact"}).fit(*three())


@pytest.mark.parametrize("technique", ["seat", "anchored"])
def test_a_decoder_that_is_not_linear_wants_pgd(technique):
    with pytest.raises(UserError, match="solver=pairs needs a decoder that is linear .*use pgd"):
        student(technique, settings={"decoder": "mlp"}).fit(TEXTS, LABELS)
    for settings in ({"solver": "pgd"}, {"stability": 0}):
        clf = student(technique, settings={"decoder": "mlp", **settings}).fit(TEXTS, LABELS)
        assert np.isfinite(clf.predict_proba(TEXTS)).all()


class Listener(Silent):
    def __init__(self):
        self.said, self.warned = [], []

    def say(self, message):
        self.said.append(message)

    def warn(self, message):
        self.warned.append(message)


def listened(settings, technique="anchored"):
    listener = Listener()
    ordered = order(student(technique, settings=settings).get_params())
    return fit(ordered, read_split(TEXTS, LABELS), None, listener, Keeping()), listener


def table(folder, **rows):
    file = folder / "synonyms.jsonl"
    file.write_text("".join(json.dumps({"word": w, "synonyms": s}) + "\n" for w, s in rows.items()))
    return str(file)


def test_a_table_of_synonyms_is_read_named_without_its_path_and_changes_the_model(tmp_path):
    settings = {"synonyms": table(tmp_path, good=["fine"], film=["story", "unheard"]), "share": 1}
    stored, listener = listened(settings)
    assert any(line.startswith("synonyms: 2 of ") for line in listener.said)
    assert stored.description.reading["synonyms"] == "synonyms.jsonl"
    assert weights(stored.model) != weights(listened({"share": 1})[0].model)
    assert any("no synonyms were given" in line for line in listened({})[1].said)


def test_no_synonym_for_any_word_is_a_warning_and_the_same_as_no_exchange(tmp_path):
    """Its term is then the clean one once more, so another model than without the term; but a sound one."""
    stored, listener = listened({"synonyms": table(tmp_path, unheard=["of"])})
    assert "no word of the vocabulary has a synonym: none will be exchanged in training" in listener.warned
    last = stored.description.history[-1]["terms"]
    assert last["swaps"] == pytest.approx(last["task"] + last["top-k"], rel=1e-4)


def test_a_technique_that_exchanges_no_words_asks_for_no_synonyms(tmp_path):
    for settings in ({"swaps": 0}, {"share": 0}):
        assert not listened(settings)[1].said


@pytest.mark.parametrize("content", ["", "nonsense", '{"word": "good"}', None], ids=["empty", "text", "half", "absent"])
def test_a_broken_file_of_synonyms_is_one_sentence_code_2_and_nothing_written(capsys, files, tmp_path, content):
    broken = files / "broken.jsonl"
    broken.unlink(missing_ok=True)
    if content is not None:
        broken.write_text(content)
    command = ["train", files / "films.csv", "--out", tmp_path / "m", "--technique", "anchored", *QUICK]
    code, out, err = run(capsys, *command, "--set", f"synonyms={broken}")
    assert code == 2
    assert out == ""
    assert "broken.jsonl" in "".join(err.split())
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())
