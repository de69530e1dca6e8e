"""Explanations as ERASER's predictions: every number worked by hand."""

import json
from pathlib import Path

import pytest

import commands
from data.test_eraser import BAD, GOOD, ROWS, write
from estimator.tiny import fitted
from steadygaze.core.errors import UserError
from steadygaze.results.eraser_predictions import names, prediction, write_predictions
from steadygaze.results.explanation import Explanation

TEXT = "A fine film, never dull."
SPANS = ((0, 1), (2, 6), (7, 11), (11, 12), (13, 18), (19, 23), (23, 24))


def explained(weights: tuple[float, ...], text: str = TEXT, spans: tuple[tuple[int, int], ...] = SPANS) -> Explanation:
    tokens = tuple(text[start:end] for start, end in spans)
    return Explanation(text, tokens, spans, weights, "good", {"bad": 0.25, "good": 0.75})


def test_a_token_weighs_what_the_words_in_it_weigh() -> None:
    """Five tokens between white space: A | fine | film, | never | dull.  Comma and full stop are words of ours."""
    result = prediction(explained((0.0, 0.25, 0.125, 0.125, 0.125, 0.25, 0.125)), "7", share=0.4)
    assert result == {
        "annotation_id": "7",
        "rationales": [
            {
                "docid": "7",
                "hard_rationale_predictions": [{"start_token": 1, "end_token": 2}, {"start_token": 4, "end_token": 5}],
                "soft_rationale_predictions": [0.0, 0.25, 0.25, 0.125, 0.375],
            }
        ],
        "classification": "good",
        "classification_scores": {"bad": 0.25, "good": 0.75},
    }


@pytest.mark.parametrize(
    ("weights", "share", "spans"),
    [
        ((0.1, 0.2, 0.3, 0.0, 0.1, 0.2, 0.1), 0.6, [(1, 3), (4, 5)]),  # neighbors are one span
        ((0.1, 0.2, 0.3, 0.0, 0.2, 0.1, 0.1), 0.6, [(1, 4)]),  # three weigh .2: of equals the earlier
        ((0.1, 0.2, 0.3, 0.0, 0.2, 0.1, 0.1), 0.01, [(2, 3)]),  # at least one
        ((0.1, 0.2, 0.3, 0.0, 0.2, 0.1, 0.1), 1.0, [(0, 5)]),
        ((-1.0, 0.5, -0.5, 0.0, 0.0, 0.0, 0.0), 1.0, [(1, 2)]),  # a weight against the label is not a rationale for it
        ((0.0,) * 7, 1.0, []),
    ],
)
def test_the_hard_rationale_is_the_top_share(
    weights: tuple[float, ...], share: float, spans: list[tuple[int, int]]
) -> None:
    (result,) = prediction(explained(weights), "a", share=share)["rationales"]
    assert [(mark["start_token"], mark["end_token"]) for mark in result["hard_rationale_predictions"]] == spans


def test_each_document_of_a_text_has_its_own_tokens() -> None:
    """One text of two documents, "a b" and "c": the tokens of the second count from 0 again."""
    explanation = explained((0.25, 0.25, 0.5), "a b\nc", ((0, 1), (2, 3), (4, 5)))
    first, second = prediction(explanation, "n", {"one": (0, 3), "two": (4, 5)}, share=0.4)["rationales"]
    assert (first["docid"], first["soft_rationale_predictions"], first["hard_rationale_predictions"]) == (
        "one",
        [0.25, 0.25],
        [],
    )
    assert (second["docid"], second["soft_rationale_predictions"]) == ("two", [0.5])
    assert second["hard_rationale_predictions"] == [{"start_token": 0, "end_token": 1}]


def test_what_was_cut_off_weighs_nothing() -> None:
    explanation = explained((0.5, 0.5), TEXT, SPANS[:2])
    assert prediction(explanation, "n")["rationales"][0]["soft_rationale_predictions"] == [0.5, 0.5, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5, float("nan")])
def test_a_share_that_is_none_is_refused_and_nothing_written(tmp_path: Path, share: float) -> None:
    with pytest.raises(UserError, match="share of tokens in a hard rationale must be above 0 and at most 1"):
        write_predictions(tmp_path / "out.jsonl", [], [], share)
    assert not list(tmp_path.iterdir())


def test_texts_have_their_annotations_names_those_of_a_column_or_numbers(tmp_path: Path) -> None:
    write(tmp_path, name="val.jsonl")
    assert list(names(tmp_path / "val.jsonl")) == [
        ("good.txt", {"good.txt": (0, len(GOOD))}),
        ("bad.txt", {"bad.txt": (0, len(BAD))}),
    ]
    (tmp_path / "own.csv").write_text("text,annotation_id\na,x\n ,y\nb,z\n")
    assert [name for name, _ in names(tmp_path / "own.csv", drop_empty=True)] == ["x", "z"]
    (tmp_path / "own.csv").write_text("text,annotation_id\na,x\nb,\n")
    with pytest.raises(UserError, match=r"own.csv, annotation_id of text 2 is empty"):
        list(names(tmp_path / "own.csv", drop_empty=True))
    for name, content in (("plain.csv", "text\na\nb\n"), ("plain.txt", "a\nb\n")):
        (tmp_path / name).write_text(content)
        result = names(tmp_path / name)
        assert [next(result)[0] for _ in range(2)] == ["1", "2"]
    with pytest.raises(UserError, match="unknown column 'txt'"):
        next(names(tmp_path / "own.csv", ["txt"]))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "m"
    fitted().save(folder)
    return folder


def test_explain_writes_a_line_for_each_annotation(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path
) -> None:
    write(tmp_path, name="val.jsonl")
    command = ["explain", model, "--file", tmp_path / "val.jsonl", "--eraser", tmp_path / "out.jsonl", "--share", "0.5"]
    ended = commands.run(capsys, *command)
    assert (ended.code, ended.out) == (0, f"2 rationales written to {tmp_path / 'out.jsonl'}\n")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["annotation_id"] for line in lines] == [row["annotation_id"] for row in ROWS]
    for line, text in zip(lines, (GOOD, BAD), strict=True):
        (rationale,) = line["rationales"]
        assert len(rationale["soft_rationale_predictions"]) == len(text.split())
        assert sum(rationale["soft_rationale_predictions"]) == pytest.approx(1)
        marked = sum(mark["end_token"] - mark["start_token"] for mark in rationale["hard_rationale_predictions"])
        assert marked == round(0.5 * len(text.split()))
        assert line["classification"] == max(line["classification_scores"], key=line["classification_scores"].get)


@pytest.mark.parametrize("more", [["a text"], ["--file", "FILE", "--html", "x.html"], ["a text", "--file", "FILE"]])
def test_rationales_are_written_of_a_file_alone(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path, more: list[str]
) -> None:
    (tmp_path / "texts.txt").write_text("a text\n")
    arguments = [str(tmp_path / "texts.txt") if part == "FILE" else part for part in more]
    ended = commands.run(capsys, "explain", model, *arguments, "--eraser", tmp_path / "out.jsonl")
    assert ended.code == 2
    assert "--eraser writes the rationales of the texts of a file" in ended.err
    assert not (tmp_path / "out.jsonl").exists()
