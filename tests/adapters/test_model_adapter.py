"""Labels, classes and kinds of texts."""

import json
from dataclasses import replace

import numpy as np
import pytest

import steadygaze as sg
from steadygaze.adapters.black_box import TextWords
from steadygaze.adapters.model_adapter import ModelAdapter, is_comparable, with_class_names
from steadygaze.auditing.prepare_case import fingerprint
from steadygaze.core.errors import UserError
from steadygaze.data.corpora import load_corpus
from steadygaze.models.inference import Model


def adapter_of(classes=("negative", "positive"), pair=None, **more):
    return ModelAdapter("it", "a test", Model(), TextWords(), list(classes), pair, "", **more)


@pytest.mark.parametrize(
    ("classes", "labels", "codes"),
    [
        (["negative", "positive"], ["positive", "negative"], [1, 0]),
        (["negative", "positive"], [1, 0, 1], [1, 0, 1]),
        (["LABEL_0", "LABEL_1"], np.array([1, 0]), [1, 0]),
        (["LABEL_0", "LABEL_1"], ["LABEL_1"], [1]),
        ([1, 0], [0, 1], [1, 0]),  # by name, where the names are numbers
        ([3, 5], [5.0, 3.0], [1, 0]),
        ([0, 1], [True, False], [1, 0]),
        ([0, 1], ["1", "0"], [1, 0]),
        (["1", "0"], [1, 0], [0, 1]),  # as --classes 1,0 gives them
        (["1", "2", "3"], [1, 3], [0, 2]),  # by name, though 1 would be a position too
        (["hate", "normal"], ["1", "0"], [1, 0]),
        (["negative", "positive"], [True, False], [1, 0]),
        (["True", "False", "other"], [True, False], [0, 1]),
        (["true", "false"], np.array([False, True]), [1, 0]),
        (["FALSE", "TRUE"], [False], [0]),
        (["1", "0"], [True, False], [0, 1]),
    ],
)
def test_labels_are_matched_by_name_else_numbers_by_place(classes, labels, codes):
    assert adapter_of(classes).label_codes(labels) == codes


@pytest.mark.parametrize(
    ("classes", "labels", "sentence"),
    [
        (
            ["neg", "pos"],
            ["pos", "good"],
            r"the label 'good', which is not a class of it; its classes are 'neg', 'pos'\..*--classes",
        ),
        (["neg", "pos"], [0, 2], "the label 2, which is not a class of it; its classes are 'neg', 'pos'"),
        (["neg", "pos"], [-1], "the label -1"),
        ([3, 5], [0, 1], "the label 0, which is not a class of it; its classes are 3, 5"),
        (["1", "2", "3"], [0, 1, 2], "the label 0, which is not a class of it"),
        (["1", "0"], [1, 2], "the label 2, which is not a class of it"),
        (["true", "unknown"], [False, False], "the label 0, which is not a class of it"),
        (["1", "2"], [0, 0], "the label 0, which is not a class of it"),
        (["neg", "pos"], ["neg", None], r"labels\[1\] is empty"),
        (["neg", "pos"], ["neg", 1], "labels must be all strings or all whole numbers"),
    ],
)
def test_a_strange_label_is_named_with_those_that_are_known(classes, labels, sentence):
    with pytest.raises(UserError, match=sentence):
        adapter_of(classes).label_codes(labels)


def test_boolean_labels_of_a_file_match_classes_called_true_and_false(tmp_path):
    """The whole path from the file: a boolean must not become a position on the way."""
    rows = [{"text": "a good film", "label": True}, {"text": "a bad film", "label": False}]
    (tmp_path / "films.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    examples = load_corpus(tmp_path / "films.jsonl").splits["train"]
    assert adapter_of(["True", "False", "other"]).label_codes([example.label for example in examples]) == [0, 1]
    assert fingerprint(examples) == fingerprint([replace(example, label=int(example.label)) for example in examples])


def test_classes_may_be_renamed_but_not_swapped():
    """The second class would be called by the name of the first, and every number would be about the other."""
    sentence = "in another order than its own, negative, positive: remove it, or pass them in that order"
    with pytest.raises(UserError, match=sentence):
        with_class_names(adapter_of(np.array(["negative", "positive"])), ["positive", "negative"])
    assert with_class_names(adapter_of(), ["negative", "positive"]).classes == ["negative", "positive"]
    assert with_class_names(adapter_of(), ["positive", "neutral"]).classes == ["positive", "neutral"]
    assert with_class_names(adapter_of(), [1, 0]).classes == [1, 0]
    with pytest.raises(UserError, match="in another order than its own, 0, 1"):
        with_class_names(adapter_of([0, 1]), ["1", "0"])
    assert with_class_names(adapter_of(), None).classes == ["negative", "positive"]


def test_a_thousand_classes_are_not_all_listed():
    with pytest.raises(UserError) as refusal:
        adapter_of(range(10, 1010)).label_codes([3])
    assert len(str(refusal.value)) < 500


def test_one_that_reads_either_is_set_to_the_kind_it_is_given():
    single, pairs = TextWords(), TextWords()
    either = replace(adapter_of(), tokens=single, pairs=pairs)
    assert (either.for_pairs(False).tokens, either.for_pairs(True).tokens) == (single, pairs)
    assert (either.for_pairs(False).pair, either.for_pairs(True).pair) == (False, True)
    assert adapter_of().for_pairs(True).tokens.kind == "words"


@pytest.mark.parametrize("pair", [False, True])
def test_one_that_reads_one_kind_refuses_the_other(pair):
    only = adapter_of(pair=pair)
    assert only.for_pairs(pair) is only
    kinds = ["single texts", r"pairs \(text, question\)"]
    with pytest.raises(UserError, match=f"it reads {kinds[pair]}, found {kinds[not pair]}"):
        only.for_pairs(not pair)


def test_alike_are_those_with_the_same_classes_and_tokens():
    adapter, other = adapter_of(), adapter_of()
    other.tokens.place(["words that the first has never met"])
    assert is_comparable(adapter, other)  # black boxes: any text is the same words to both
    assert not is_comparable(adapter, adapter_of(["positive", "negative"]))
    assert not is_comparable(replace(adapter, fingerprint="a"), replace(other, fingerprint="b"))
    assert is_comparable(replace(adapter, fingerprint="a"), replace(adapter_of(), fingerprint="b"))


def shares(texts):
    """The probability of the first class is higher for texts with "no"."""
    first = np.array([0.7 if "no" in text else 0.4 for text in texts])
    return np.stack([first, 1 - first], 1)


def test_a_class_may_have_the_name_none():
    model = sg.load(shares, classes=["None", "favor"])
    explanation = model.explain("a fine film")
    assert (explanation.label, explanation.target) == ("favor", None)
    assert model.explain("no, a film").weights == pytest.approx((0.3, 0, 0, 0))
    assert model.explain("no, a film", target="favor").weights == pytest.approx((-0.3, 0, 0, 0))
    assert model.explain("a fine film", target="None").target == "None"


def test_a_classifier_with_a_class_none_is_explained_by_attention(tmp_path):
    texts, labels = ["a good film", "a dull film"] * 10, ["favor", "None"] * 10
    classifier = sg.TextClassifier(epochs=1).fit(texts, labels, validation=(texts, labels))
    assert sum(sg.explain(classifier, "a good film").weights) == pytest.approx(1)
    assert sg.word_weights(classifier, texts).explainers == ["attention"]


@pytest.mark.parametrize("labels", [["favor"], ["favor", "None"], []])
def test_score_needs_a_label_for_each_text(labels):
    model = sg.load(shares, classes=["None", "favor"])
    assert model.score(["no", "yes", "a"], ["None", "favor", "None"]) == pytest.approx(2 / 3)
    with pytest.raises(UserError, match=f"3 texts and {len(labels)} labels|there are no labels"):
        model.score(["no", "yes", "a"], labels)


def test_labels_may_be_a_column_of_a_data_frame():
    pandas = pytest.importorskip("pandas")
    model = sg.load(shares, classes=["None", "favor"])
    frame = pandas.DataFrame({"label": ["None", "favor", "None"]})
    assert model.score(["no", "yes", "a"], frame) == pytest.approx(2 / 3)
    assert sg.evaluate(model, ["no", "yes", "a"], frame)["accuracy"] == pytest.approx(2 / 3)
    with pytest.raises(UserError, match="the labels have 2 columns"):
        model.score(["no"], pandas.DataFrame({"a": ["None"], "b": ["favor"]}))


def test_the_message_about_labels_lists_those_of_the_data_and_what_to_pass():
    adapter = adapter_of()
    with pytest.raises(UserError) as error:
        adapter.label_codes(["upset", "happy", "upset"])
    assert "The labels of the data are 'happy', 'upset'." in str(error.value)
    assert "--classes happy,upset (classes=) if 'negative' is 'happy' and 'positive' is 'upset'" in str(error.value)
    with pytest.raises(UserError) as error:
        adapter.label_codes(["upset", "happy", "calm"])
    assert "--classes A,B (classes=), where A is your name of 'negative' and B is your name of 'positive'" in str(
        error.value
    )


def test_a_loaded_model_is_shown_by_name_and_classes():
    assert repr(adapter_of(["no", "yes"])) == "ModelAdapter('it', a test, classes are 'no', 'yes')"


def test_renamed_classes_are_a_fact_of_the_report():
    assert with_class_names(adapter_of(), ["upset", "happy"]).facts == {
        "renamed classes": "negative is upset, positive is happy"
    }
    assert not with_class_names(adapter_of(), ["negative", "positive"]).facts
