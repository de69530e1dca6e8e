"""explain: settings and seed of the explainer, pairs on the command line, and wrong predictions."""

import json
from pathlib import Path

import numpy as np
import pytest

import steadygaze
from adapters.folders import save
from commands import Ended, run
from steadygaze.adapters import streaming
from steadygaze.adapters.black_box import black_box
from steadygaze.core.errors import UserError

LONG = "a good film was not bad and the cast was good and the film was not the bad cast"


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("bert", tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture(scope="module")
def entailing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = {"id2label": {0: "entailment", 1: "neutral", 2: "contradiction"}}
    return save("bert", tmp_path_factory.mktemp("models") / "nli", **names)


@pytest.fixture
def explained(capsys, bert):
    def explain(*inputs: object, model: Path = bert) -> Ended:
        return run(capsys, "explain", model, *inputs)

    return explain


def weights(ended: Ended) -> list[float]:
    assert ended.code == 0, ended.err
    return json.loads(ended.out)["weights"]


@pytest.mark.slow
@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("explainer", ["lime", "kernel-shap", "random"])
def test_the_seed_reaches_what_draws_and_is_the_same_again_by_default(explained, explainer):
    few = [] if explainer == "random" else ["--set", "samples=64"]
    first, again, other = (
        weights(explained(LONG, "--explainer", explainer, *few, *seed, "--json"))
        for seed in ([], ["--seed", 0], ["--seed", 1])
    )
    assert first == again
    assert first != other


@pytest.mark.slow
def test_attention_is_aggregated_as_requested(explained, bert):
    rolled = steadygaze.load(bert, device="cpu", attention="rollout").explain(LONG, "attention")
    ended = explained(LONG, "--explainer", "attention", "--attention", "rollout", "--json")
    assert weights(ended) == pytest.approx(list(rolled.weights))
    last = explained(LONG, "--explainer", "attention", "--json")
    assert weights(ended) != pytest.approx(weights(last))
    assert f"audit {bert} --attention rollout --data" in explained(LONG, "--attention", "rollout").err


@pytest.mark.slow
def test_settings_reach_the_explainer(explained):
    few, many = (
        weights(explained(LONG, "--explainer", "integrated-gradients", "--set", f"steps={steps}", "--json"))
        for steps in (2, 80)
    )
    assert few != many
    wide = weights(explained(LONG, "--explainer", "lime", "--set", "samples=64", "--set", "ridge=50", "--json"))
    narrow = weights(explained(LONG, "--explainer", "lime", "--set", "samples=64", "--json"))
    assert sum(map(abs, wide)) < sum(map(abs, narrow))


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--explainer", "lime", "--set", "sampels=9"], "did you mean 'samples'?  Known: max_units, output,"),
        (["--explainer", "lime", "--set", "samples=9"], "'samples': found 9"),
        (["--explainer", "lime", "--set", "samples"], "--set takes key=value"),
        (["--explainer", "gradient", "--set", "steps=9"], "unknown setting 'steps'"),
        (["--explainer", "attention", "--set", "steps=9"], "attention has no settings"),
    ],
)
def test_settings_are_checked(explained, options, message):
    ended = explained("a good film", *options)
    assert ended.code == 2
    assert message in ended.err


LIME_SETTINGS = {"samples", "width", "ridge", "max_units", "output", "seed"}


def test_the_settings_of_explainers_are_listed(capsys):
    rows = {row["name"]: row for row in json.loads(run(capsys, "list", "explainers", "--json").out)}
    assert {field["name"] for field in rows["lime"]["settings"]} == LIME_SETTINGS
    assert [field["name"] for field in rows["integrated-gradients"]["settings"]] == ["steps", "output"]


def test_a_pair_is_given_by_its_own_option_and_both_texts_are_explained(explained):
    ended = explained("--pair", "a good film", "was the film bad", "--explainer", "leave-one-out", "--json")
    result = json.loads(ended.out)
    assert result["tokens"] == ["a", "good", "film"]
    assert result["question_tokens"] == ["was", "the", "film", "bad"]
    assert all(result["question_weights"])
    two = explained("a good film", "was the film bad", "--json").out.splitlines()
    assert [json.loads(line)["question"] for line in two] == [None, None]


def test_texts_in_quotes_are_refused_where_the_labels_are_relations_of_two(explained, entailing):
    ended = explained("a good film", "was the film bad", model=entailing)
    assert ended.code == 2
    assert "--pair" in ended.err
    assert explained("--pair", "a good film", "was the film bad", model=entailing).code == 0


def test_a_pair_stands_alone(explained):
    ended = explained("a good film", "--pair", "a", "b")
    assert ended.code == 2
    assert "leave out other texts" in ended.err


@pytest.fixture
def reviews(bert, tmp_path) -> tuple[Path, list[str]]:
    """A file whose second of three labels is not the predicted one, and the true labels."""
    texts = ["a good film", "the cast was bad", "not a bad film"]
    model = steadygaze.load(bert)
    labels = list(model.predict(texts))
    labels[1] = next(label for label in model.classes if label != labels[1])
    file = tmp_path / "reviews.csv"
    file.write_text("text,rating\n" + "".join(f"{text},{label}\n" for text, label in zip(texts, labels, strict=True)))
    return file, labels


def test_wrong_predictions_are_marked_and_counted_in_a_terminal(explained, reviews):
    file, labels = reviews
    ended = explained("--file", file, "--label", "rating")
    assert ended.code == 0, ended.err
    marks = ["✗ wrong" in part for part in ended.out.strip().split("\n\n")]
    assert marks == [False, True, False]
    assert f"✗ wrong: the label is {labels[1]}" in ended.out
    assert "1 of 3 predictions are wrong" in ended.err
    assert "are wrong" not in explained("--file", file).err


@pytest.mark.slow
def test_json_and_page_have_the_true_labels(explained, reviews, tmp_path):
    file, labels = reviews
    ended = explained("--file", file, "--label", "rating", "--json")
    assert [json.loads(line)["true_label"] for line in ended.out.splitlines()] == labels
    page = tmp_path / "page.html"
    ended = explained("--file", file, "--label", "rating", "--html", page, "--json")
    assert json.loads(ended.out) == {
        "health": [],
        "html": str(page),
        "explained": 3,
        "drawn": 3,
        "labeled": 3,
        "wrong": 1,
        "training_texts": 0,
    }
    html = page.read_text()
    assert html.count("✗ wrong: the label is") == 1
    assert html.count("✓ correct") == 2
    assert "1 of the 3 predictions on this page are wrong." in html


def test_labels_need_a_file_and_classes_of_the_model(explained, tmp_path):
    assert "--label names a column of the file" in explained("a good film", "--label", "rating").err
    excluded = explained("--file", tmp_path / "a.csv", "--label", "rating", "--out", tmp_path / "e.csv")
    assert "--label does not go with --out" in excluded.err
    other = tmp_path / "other.csv"
    other.write_text("text,rating\na good film,lukewarm\n")
    ended = explained("--file", other, "--label", "rating")
    assert ended.code == 2
    assert "the data have the label 'lukewarm', which is not a class of" in ended.err


@pytest.mark.slow
def test_rows_without_a_label_are_left_out_only_if_labels_are_read(explained, bert, tmp_path):
    file, (first, second, *_) = tmp_path / "some.csv", steadygaze.load(bert).classes
    file.write_text(f"text,rating\na good film,{first}\na dull film,\n,{first}\na bad film,{second}\n")
    ended = explained("--file", file, "--label", "rating", "--drop-empty", "--json")
    assert [json.loads(line)["text"] for line in ended.out.splitlines()] == ["a good film", "a bad film"]
    assert "some.csv: empty text: 1 left out; no label: 1 left out" in ended.err
    ended = explained("--file", file, "--drop-empty", "--json")
    assert len(ended.out.splitlines()) == 3
    assert "some.csv: empty text: 1 left out\n" in ended.err
    assert "no label" not in ended.err


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("columns", "values", "expected"),
    [
        (["rating"], ["{0}"], " --label rating"),
        (["id", "rating"], ["3", "{0}"], " --label rating"),
        (["rating", "other"], ["{0}", "{0}"], ""),  # both may be the label
        (["stars"], ["3"], ""),
        (["label"], ["{0}"], ""),  # the default of audit
    ],
)
def test_the_next_audit_has_the_column_whose_cells_are_classes(explained, bert, tmp_path, columns, values, expected):
    file = tmp_path / "some.csv"
    rows = [",".join(["a film", *values]).format(name) for name in steadygaze.load(bert).classes]
    file.write_text("\n".join([",".join(["text", *columns]), *rows, ""]))
    audit = f"next:  steadygaze audit {bert} --data {file}{expected} --drop-empty --html audit.html"
    assert audit in explained("--file", file, "--drop-empty").err.splitlines()


def test_lists_of_labels_give_the_class_of_one_output(tmp_path):
    def predict(texts):
        return np.full((len(texts), 2), 0.5)

    rows = [("a", ["toxic"]), ("b", []), ("c", ["rude", "toxic"]), ("d", ["rude"])]
    file = tmp_path / "texts.jsonl"
    file.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows))
    adapter = black_box(predict, ["rude", "toxic"], "model", "multi-label")
    classes = streaming.labels(adapter, "toxic", file, ["text"], "label", False)
    assert list(classes) == ["toxic", "not toxic", "toxic", "not toxic"]
    file.write_text('{"text": "a", "label": ["kind"]}\n')
    with pytest.raises(UserError, match="'kind', which is not an output of the model"):
        list(streaming.labels(adapter, "toxic", file, ["text"], "label", False))


def test_training_texts_among_the_labeled_texts_are_counted(explained, tmp_path):
    texts = [f"a {word} film {i}" for i in range(12) for word in ("bad", "good")]
    labels = [text.split()[1] for text in texts]
    steadygaze.TextClassifier("average", epochs=1, device="cpu").fit(texts, labels).save(tmp_path / "model")
    file = tmp_path / "some.csv"
    file.write_text("text,label\n" + "".join(f"{text},{text.split()[1]}\n" for text in [*texts[:3], "a good play"]))
    ended = explained("--file", file, "--label", "label", model=tmp_path / "model")
    assert "! 3 of 4 texts were training texts: the scores are optimistic" in ended.err
    audit = f"next:  steadygaze audit {tmp_path / 'model'} --data {file} --label label --html audit.html"
    assert ended.err.splitlines()[-2:] == [audit, "next:  steadygaze list explainers"]


def test_unknown_words_are_counted(tmp_path, capsys):
    texts = [f"a {word} film {i}" for i in range(12) for word in ("bad", "good")]
    clf = steadygaze.TextClassifier("average", epochs=1, device="cpu", settings={"min_df": 1})
    clf.fit(texts, [text.split()[1] for text in texts]).save(tmp_path / "model")
    ended = run(capsys, "explain", tmp_path / "model", "a good film", "a zyx film")
    assert "! unknown tokens: 1 of 6 are not in the model's vocabulary." in ended.err
    columns = "--data FILE --text COLUMN --label COLUMN --html audit.html"
    assert f"next:  steadygaze audit {tmp_path / 'model'} {columns}" in ended.err
    assert "unknown tokens" not in run(capsys, "explain", tmp_path / "model", "a good film").err
    (line,) = [
        line for line in run(capsys, "explain", tmp_path / "model", "zyx qwf").err.splitlines() if "vocab" in line
    ]
    assert line.startswith("! unknown tokens: 2 of 2 are not in the model's vocabulary.")
    assert "Its predictions for these texts are not reliable" in line
