"""Which texts are trained on and which are audited: never the same."""

from collections import Counter
from pathlib import Path

import pytest

from steadygaze.core.errors import UserError
from steadygaze.core.types import Example
from steadygaze.study.study_data import hold_out_audit_texts, load_study_data, training_inputs
from study.tiny import config_with


@pytest.fixture
def csv(tmp_path: Path) -> str:
    path = tmp_path / "films.csv"
    rows = [f"film number {i},{'good' if i % 3 else 'bad'}" for i in range(60)]
    path.write_text("\n".join(["text,label", *rows]) + "\n")
    return str(path)


def test_the_test_split_is_audited_and_not_trained_on():
    inputs = load_study_data(config_with())
    assert inputs.corpus.sizes == {"train": 60, "validation": 20}
    assert (inputs.split, len(inputs.examples)) == ("test", 16)


def test_of_a_file_a_fifth_of_every_class_is_kept_out(csv):
    inputs = load_study_data(config_with(data=csv))
    assert inputs.split == "held-out"
    assert Counter(x.label for x in inputs.examples) == {"good": 8, "bad": 4}
    texts = {x.text for x in inputs.examples}
    assert len(texts) == 12
    assert not texts & {x.text for x in inputs.corpus.splits["train"]}
    assert inputs.corpus.sizes == {"train": 48}
    assert [x.text for x in load_study_data(config_with(data=csv, seed=5)).examples] == [
        x.text for x in inputs.examples
    ]


def test_a_split_can_be_named_and_cut():
    inputs = load_study_data(config_with(split="validation", limit=7))
    assert (inputs.split, len(inputs.examples)) == ("validation", 7)
    every = [x.text for x in load_study_data(config_with(split="validation")).examples]
    places = [every.index(x.text) for x in inputs.examples]
    assert places == sorted(places)
    assert [x.text for x in load_study_data(config_with(split="validation", limit=7, seed=1)).examples] != [
        every[i] for i in places
    ]


@pytest.mark.parametrize(
    ("split", "hint"), [("train", "trained on the split 'train'"), ("tset", "no split 'tset', only")]
)
def test_a_split_that_cannot_be_audited_is_refused(split, hint):
    with pytest.raises(UserError, match=hint):
        load_study_data(config_with(split=split))


def test_an_empty_split_is_refused():
    with pytest.raises(UserError, match="no texts to audit: name another with --split"):
        load_study_data(config_with(data="planted-reviews:sizes=[60,20,0]"))


def test_too_few_texts_to_keep_any_out():
    with pytest.raises(UserError, match="8 texts are too few"):
        hold_out_audit_texts([Example(f"text {i}", "ab"[i % 2]) for i in range(8)])


def test_a_class_of_four_keeps_all_of_them_for_training():
    examples = [Example(f"text {i}", "rare" if i < 4 else "usual") for i in range(24)]
    trained, audited = hold_out_audit_texts(examples)
    assert sum(x.label == "rare" for x in trained) == 4
    assert {x.label for x in audited} == {"usual"}


def test_a_local_transformer_counts_by_its_files(tmp_path: Path):
    inputs = []
    for number in range(2):
        folder = tmp_path / str(number) / "bert"
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(bytes([number]) * 9)
        inputs.append(training_inputs(config_with(encoder=f"transformer:{folder}"), "cpu"))
    assert [description["encoder"] for description in inputs] == ["transformer:bert"] * 2
    assert inputs[0] != inputs[1]
    (folder / "model.safetensors").write_bytes(bytes(9))
    assert training_inputs(config_with(encoder=f"transformer:{folder}"), "cpu") == inputs[0]


def test_versions_of_the_libraries_in_use_count():
    assert training_inputs(config_with(), "cpu").keys() >= {"code", "torch", "numpy"}
    assert "transformers" not in training_inputs(config_with(), "cpu")
    assert training_inputs(config_with(encoder="transformer:minilm"), "cpu").keys() >= {"transformers", "tokenizers"}
