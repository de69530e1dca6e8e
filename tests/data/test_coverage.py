"""Coverage counts truncated texts and unknown tokens; predict and audit warn about them."""

import pytest

import steadygaze as sg
from steadygaze.data.token_alignment import Coverage, coverage
from steadygaze.data.word_tokenizer import build_word_tokenizer

KNOWN = ["a good film", "a bad film"]


def test_truncated_texts_and_unknown_tokens_are_counted() -> None:
    tokens = build_word_tokenizer(KNOWN * 3, max_length=4)
    texts = ["a good film", "a good film a good film", "zyx wvu", ""]
    read = coverage(tokens, tokens.encode(texts))
    assert read == Coverage(texts=4, truncated=1, tokens=9, unknown=2, max_length=4)
    assert read + read == Coverage(8, 2, 18, 4, 4)
    assert read.facts == {"truncated texts": "1 of 4", "unknown tokens": "22.2 % of 9"}
    assert [str(warning)[:12] for warning in read.warnings()] == ["1 of 4 texts"]


def test_no_text_is_no_warning() -> None:
    assert list(Coverage().warnings()) == []


@pytest.fixture(scope="module")
def clf() -> sg.TextClassifier:
    clf = sg.TextClassifier("average", epochs=1, device="cpu", max_length=8, settings={"dimension": 4})
    return clf.fit(KNOWN * 20, ["yes", "no"] * 20)


def test_predict_warns_about_texts_that_are_mostly_unknown(clf: sg.TextClassifier) -> None:
    with pytest.warns(UserWarning, match="67 % of the tokens are not in the model's vocabulary"):
        clf.predict(["ein guter film"])


def test_predict_warns_about_truncated_texts(clf: sg.TextClassifier) -> None:
    with pytest.warns(UserWarning, match="1 of 2 texts were truncated at 8 tokens"):
        clf.predict(["a good film " * 9, "a bad film"])


def test_an_audit_reports_coverage_first(clf: sg.TextClassifier) -> None:
    report = sg.audit(clf, ["a good film " * 9, "ein schlechter streifen"], ["yes", "no"])
    assert report.facts["truncated texts"] == "1 of 2"
    assert report.facts["unknown tokens"] == "27.3 % of 11"
    assert any(str(note).startswith("1 of 2 texts were truncated at 8 tokens") for note in report.notes)
    assert report.date.endswith("Z")


def test_the_command_warns_once_after_the_last_text(clf: sg.TextClassifier, tmp_path, capsys) -> None:
    from commands import run

    clf.save(tmp_path / "model")
    ended = run(capsys, "predict", tmp_path / "model", "ein guter streifen", "noch einer", "--device", "cpu")
    assert ended.code == 0
    assert ended.err.count("of the tokens are not in the model's vocabulary") == 1
