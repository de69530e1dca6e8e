"""Training techniques at the edge: settings out of range, texts too short, solvers and synonyms that cannot be used."""

import json

import numpy as np
import pytest

from commands import refused
from estimator.students import QUICK, STUDENTS, student
from estimator.tiny import LABELS, NOUNS, TEXTS, write_csv
from steadygaze.core.errors import UserError
from steadygaze.estimator.fit import fit
from steadygaze.estimator.inputs import read_split
from steadygaze.estimator.train_config import train_config
from training.toys import Listener, weights


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("data") / "films.csv")


@pytest.mark.parametrize(
    ("technique", "setting", "value"),
    [
        ("attention-at", "epsilon", -1),
        ("attention-at", "weight", -0.1),
        ("attention-rp", "epsilon", "far"),
        ("attention-iat", "variant", "printed"),
        ("word-at", "epsilon", 101),
        ("word-iat", "neighbors", 0),
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
    assert "radius" in refused(capsys, *command)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("technique", [*STUDENTS, "word-iat", "attention-iat"])
def test_texts_of_one_word_and_texts_shorter_than_k_are_trained_on(technique):
    short = ["good", "bad", "good film", "bad plot"] * 6
    extra = {} if technique in ("word-iat", "attention-iat") else {"k": 50}
    clf = student(technique, settings=extra).fit(short, ["pos", "neg"] * 12)
    assert np.isfinite(clf.predict_proba(short)).all()


def three():
    return [*TEXTS, *[f"an odd {s} indeed" for s in NOUNS]], [*LABELS, *["odd"] * 12]


def test_three_classes_are_for_pairs_and_pgd_and_exact_reports_it():
    for solver in ("pairs", "pgd"):
        clf = student("seat", settings={"solver": solver}).fit(*three())
        assert np.isfinite(clf.predict_proba(TEXTS)).all()
    with pytest.raises(UserError, match="solver=exact is for two classes, found 3: use solver=pairs, or pgd"):
        student("seat", settings={"solver": "exact"}).fit(*three())


@pytest.mark.parametrize("technique", ["seat", "anchored"])
def test_a_decoder_that_is_not_linear_wants_pgd(technique):
    with pytest.raises(UserError, match=r"solver=pairs needs a decoder that is linear .*solver=pgd"):
        student(technique, settings={"decoder": "mlp"}).fit(TEXTS, LABELS)
    for settings in ({"solver": "pgd"}, {"stability": 0}):
        clf = student(technique, settings={"decoder": "mlp", **settings}).fit(TEXTS, LABELS)
        assert np.isfinite(clf.predict_proba(TEXTS)).all()


def listened(settings, technique="anchored"):
    listener = Listener()
    ordered = train_config(student(technique, settings=settings).get_params())
    return fit(ordered, read_split(TEXTS, LABELS), read_split(TEXTS, LABELS), listener), listener


def table(folder, **rows):
    file = folder / "synonyms.jsonl"
    file.write_text("".join(json.dumps({"word": w, "synonyms": s}) + "\n" for w, s in rows.items()))
    return str(file)


def test_a_table_of_synonyms_is_read_named_without_its_path_and_changes_the_model(tmp_path):
    settings = {"synonyms": table(tmp_path, good=["fine"], film=["story", "unheard"]), "share": 1}
    stored, listener = listened(settings)
    assert any(line.startswith("synonyms: 2 of ") for line in listener.messages)
    assert stored.description.text["synonyms"] == "synonyms.jsonl"
    assert weights(stored.model) != weights(listened({"share": 1})[0].model)


@pytest.mark.parametrize("technique", ["anchored", "consensus"])
@pytest.mark.usefixtures("unlearned_teachers")
def test_without_a_table_training_warns_names_the_option_and_substitutes_nothing(technique):
    stored, listener = listened({"swaps": 1}, technique)
    assert listener.warned[0] == (
        f"there is no table of synonyms: {technique} trains without substituted words.  "
        "Pass one with the setting synonyms=FILE (--set synonyms=FILE); steadygaze synonyms build writes one"
    )
    assert "swaps" not in stored.description.history[-1]["terms"]
    assert weights(stored.model) == weights(listened({"swaps": 0}, technique)[0].model)


def test_function_words_and_negations_of_a_table_are_not_substituted_in_training(tmp_path):
    file = table(tmp_path, the=["a"], good=["fine", "not"], never=["hardly"], film=["story"])
    _, listener = listened({"synonyms": file})
    assert any(line.startswith("synonyms: 2 of ") for line in listener.messages)


def test_a_vocabulary_without_synonyms_is_a_warning_and_equals_no_substitution(tmp_path):
    """Its term is then the clean one once more, so another model than without the term; but a sound one."""
    stored, listener = listened({"synonyms": table(tmp_path, unheard=["of"])})
    assert "no word of the vocabulary has a synonym: none will be substituted in training" in listener.warned
    last = stored.description.history[-1]["terms"]
    assert last["swaps"] == pytest.approx(last["task"] + last["top-k"], rel=1e-4)


def test_a_technique_without_substitutions_needs_no_synonyms(tmp_path):
    for settings in ({"swaps": 0}, {"share": 0}):
        assert not any("synonym" in message for message in listened(settings)[1].messages)


@pytest.mark.parametrize("content", ["", "nonsense", '{"word": "good"}', None], ids=["empty", "text", "half", "absent"])
def test_a_broken_file_of_synonyms_is_one_sentence_code_2_and_nothing_written(capsys, films, tmp_path, content):
    broken = films.with_name("broken.jsonl")
    broken.unlink(missing_ok=True)
    if content is not None:
        broken.write_text(content)
    command = ["train", films, "--out", tmp_path / "m", "--technique", "anchored", *QUICK]
    assert "broken.jsonl" in refused(capsys, *command, "--set", f"synonyms={broken}").replace(" ", "")
    assert not list(tmp_path.iterdir())


def test_a_solver_that_cannot_work_is_refused_before_anything_is_trained(capsys, films, tmp_path):
    command = ["train", films, "--out", tmp_path / "m", "--technique", "seat", *QUICK]
    assert "decoder=mlp" in refused(capsys, *command, "--set", "decoder=mlp")
    assert not list(tmp_path.iterdir())


def test_a_file_of_synonyms_that_is_not_there_is_refused_whatever_the_technique(capsys, films, tmp_path):
    command = ["train", films, "--out", tmp_path / "m", *QUICK, "--set", "synonyms=absent.jsonl"]
    assert "the synonym file absent.jsonl does not exist" in refused(capsys, *command)
    assert not list(tmp_path.iterdir())
