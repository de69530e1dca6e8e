"""References and teachers: those that are given, those that are kept and found again, those that are refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from commands import refused, run
from estimator.students import HELD, QUICK, STUDENTS, bits, student
from estimator.tiny import LABELS, PAIRS, SMALL, TEXTS, tiny, write_csv
from steadygaze.core.errors import UserError
from steadygaze.estimator.fit import CheckpointConfig, fit
from steadygaze.estimator.inputs import read_split
from steadygaze.estimator.train_config import train_config
from training.toys import Recorder, weights

pytestmark = pytest.mark.usefixtures("unlearned_teachers")
THREE = ["pos", "neg", "odd"]


# --- a reference that is given


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("technique", ["seat", "anchored"])
def test_a_given_reference_makes_the_same_student_as_one_trained_by_the_run(technique):
    """The reference of a run of seed 3 is a vanilla model of seed 3."""
    own = student(technique, seed=3, epochs=2).fit(TEXTS, LABELS, **HELD)
    reference = tiny(seed=3, epochs=2).fit(TEXTS, LABELS, **HELD)
    inputs = student(technique, seed=3, epochs=2).fit(TEXTS, LABELS, **HELD, reference=reference)
    assert bits(inputs) == bits(own)
    assert [record["stage"] for record in inputs.history_] == ["student"] * 2
    other = tiny(seed=4, epochs=2).fit(TEXTS, LABELS, **HELD)
    assert bits(student(technique, seed=3, epochs=2).fit(TEXTS, LABELS, **HELD, reference=other)) != bits(own)


def test_given_teachers_make_the_same_student_as_those_trained_by_the_run():
    own = student("consensus", seed=1).fit(TEXTS, LABELS, **HELD)
    teachers = [tiny(seed=seed).fit(TEXTS, LABELS, **HELD) for seed in (2, 3)]  # seed × teachers, and the next
    inputs = student("consensus", seed=1).fit(TEXTS, LABELS, **HELD, reference=teachers)
    assert bits(inputs) == bits(own)
    assert bits(student("consensus", seed=1).fit(TEXTS, LABELS, **HELD, reference=teachers[::-1])) != bits(own)


def test_a_reference_is_left_as_it_was():
    reference = tiny().fit(TEXTS, LABELS, **HELD)
    before, message = bits(reference), reference.predict_proba(TEXTS)
    student().fit(TEXTS, LABELS, **HELD, reference=reference)
    assert bits(reference) == before
    assert np.array_equal(reference.predict_proba(TEXTS), message)


OTHER_TEXTS = [text.replace("fine", "grand") for text in TEXTS]
FOREIGN = {
    "vocabulary": (lambda: tiny().fit(OTHER_TEXTS, LABELS), "has another vocabulary"),
    "min_df": (lambda: tiny(settings={**SMALL, "min_df": 3}).fit(TEXTS, LABELS), "has another vocabulary"),
    "labels": (lambda: tiny().fit(TEXTS, ["good"] * 12 + ["bad"] * 12), "has the labels"),
    "classes": (lambda: tiny().fit(TEXTS, [THREE[i % 3] for i in range(24)]), "has the labels"),
    "encoder": (lambda: tiny("lstm").fit(TEXTS, LABELS), "has another encoder"),
    "shape": (
        lambda: tiny(settings={**SMALL, "hidden": 5}).fit(TEXTS, LABELS),
        "has another hidden: 5, here 4; train both .* settings",
    ),
    "max_length": (lambda: tiny(max_length=50).fit(TEXTS, LABELS), "vocabulary|max_length"),
    "pair": (lambda: tiny().fit(PAIRS, LABELS), "has another"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_reference_of_another_kind_is_refused_in_a_sentence(what):
    make, message = FOREIGN[what]
    with pytest.raises(UserError, match=f"the reference .*({message})"):
        student().fit(TEXTS, LABELS, reference=make())


@pytest.mark.parametrize(
    ("technique", "count", "message"),
    [
        ("vanilla", 1, "vanilla takes none as reference or teachers, found 1"),
        ("word-at", 1, "word-at takes none"),
        ("seat", 2, "seat takes 1 as reference or teachers, found 2"),
        ("anchored", 3, "anchored takes 1 .*found 3"),
        ("consensus", 1, "consensus takes 2 .*found 1; for 1, .*--set teachers=1$"),
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


@pytest.mark.parametrize("wrong", ["model/", 3, None.__class__], ids=["a path", "a number", "a class"])
def test_what_is_no_classifier_is_no_reference(wrong):
    with pytest.raises(UserError, match="reference must be a fitted TextClassifier"):
        student().fit(TEXTS, LABELS, reference=[wrong])


# --- the command line


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """Texts as a file, and saved models of several kinds."""
    folder = tmp_path_factory.mktemp("given")
    write_csv(folder / "films.csv")
    tiny().fit(TEXTS, LABELS).save(folder / "reference")
    for what in ("vocabulary", "labels", "encoder"):
        FOREIGN[what][0]().save(folder / what)
    return folder


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["vocabulary"], "has another vocabulary"),
        (["labels"], "has the labels"),
        (["encoder"], "has another encoder"),
        (["reference", "reference"], "anchored takes 1 as reference or teachers, found 2"),
        (["absent"], "absent"),
    ],
)
def test_a_wrong_reference_on_the_command_line_is_one_sentence_code_2_and_nothing_written(
    capsys, files, tmp_path, names, message
):
    options = [part for name in names for part in ("--from", files / name)]
    command = ["train", files / "films.csv", "--out", tmp_path / "m", "--technique", "anchored", *QUICK, *options]
    assert message in refused(capsys, *command)
    assert not list(tmp_path.iterdir())


def test_a_reference_on_the_command_line_is_used(capsys, files, tmp_path):
    command = ["train", files / "films.csv", "--technique", "anchored", "--encoder", "average", *QUICK]
    command += ["--set", "swaps=0", "--json", "--quiet"]
    code, out, _ = run(capsys, *command, "--out", tmp_path / "m", "--from", files / "reference")
    assert code == 0
    assert {record["stage"] for record in json.loads(out)["history"]} == {"student"}
    assert [path.name for path in tmp_path.iterdir()] == ["m"]  # nothing was trained that could be kept


def test_teachers_are_kept_by_train_and_found_by_the_next_student(capsys, files, tmp_path):
    """Two students that differ in a setting of their own; then the first once more."""
    command = ["train", files / "films.csv", "--technique", "consensus", "--set", "teachers=2", *QUICK]
    command += ["--set", "swaps=0", "--quiet", "--json"]
    assert run(capsys, *command, "--out", tmp_path / "one")[0] == 0
    kept = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (tmp_path / ".teacher-cache").iterdir()}
    assert len(kept) == 2
    assert run(capsys, *command, "--out", tmp_path / "two", "--set", "overlap=0")[0] == 0
    assert run(capsys, *command, "--out", tmp_path / "again")[0] == 0
    now = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (tmp_path / ".teacher-cache").iterdir()}
    assert now == kept  # what was found was not even written again
    weights, two, again = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two", "again"))
    assert weights == again
    assert weights != two


def test_a_teacher_cache_can_be_named(capsys, files, tmp_path):
    command = ["train", files / "films.csv", "--technique", "seat", *QUICK, "--quiet"]
    assert run(capsys, *command, "--out", tmp_path / "m", "--teacher-cache", tmp_path / "kept")[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "m"]
    assert len(list((tmp_path / "kept").iterdir())) == 1


def test_an_invalid_teacher_cache_is_refused_before_training(capsys, files, tmp_path):
    command = ["train", files / "films.csv", "--technique", "seat", *QUICK, "--quiet", "--out", tmp_path / "m"]
    (tmp_path / "file").write_text("mine")
    for wrong, why in (("file", "is a file"), ("m", "is the same path as --teacher-cache")):
        assert why in refused(capsys, *command, "--teacher-cache", tmp_path / wrong)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("technique", STUDENTS)
def test_a_kept_teacher_spares_its_epochs_and_the_student_is_the_same(technique, tmp_path):
    def trained(seed=0, **changes):
        watcher = Recorder()
        ordered = train_config(student(technique, seed=seed, epochs=2, **changes).get_params())
        stored = fit(
            ordered,
            read_split(TEXTS, LABELS),
            read_split(TEXTS, LABELS),
            watcher,
            CheckpointConfig(teacher_cache=tmp_path / "teachers"),
        )
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


# --- what falls short: each of these is to lose its mark together with its cause


def test_students_of_two_seeds_share_teachers_where_no_validation_texts_are_given(tmp_path):
    """Seeds 2 and 3 set other texts aside and know other words: a teacher's weights do not even fit."""
    for seed in (2, 3):
        clf = student("consensus", seed=seed, settings={"first_teacher": 5})
        clf.fit(TEXTS, LABELS, teacher_cache=tmp_path / "kept")
        alone = student("consensus", seed=seed, settings={"first_teacher": 5}).fit(TEXTS, LABELS)
        assert bits(clf) == bits(alone)


def test_a_reference_can_be_trained_on_afterward():
    reference = tiny().fit(TEXTS, LABELS)
    student().fit(TEXTS, LABELS, reference=reference)
    assert all(parameter.requires_grad for parameter in reference.stored_.model.parameters())
