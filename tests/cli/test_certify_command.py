"""`steadygaze certify`: what it prints where, and what it refuses."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import commands
import steadygaze
from commands import Ended
from estimator.tiny import LABELS, PAIRS, SMALL, TEXTS, fitted, fitted_pair, tiny
from steadygaze.certificates.certificate import SCOPE
from steadygaze.core.rounding import percent
from steadygaze.results import soft_stability, substitution_certificates
from steadygaze.results.health import Health, HealthProblem, ProblemKind, without_health

Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line in this process, on a wide terminal."""
    monkeypatch.setenv("COLUMNS", "200")
    return partial(commands.run, capsys, "certify")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, one with another decoder, one of pairs, and data for them."""
    folder = tmp_path_factory.mktemp("certify")
    fitted().save(folder / "model")
    fitted_pair().save(folder / "pair")
    tiny(settings={**SMALL, "decoder": "mlp"}).fit(TEXTS, LABELS).save(folder / "mlp")
    lines = [json.dumps({"text": text, "label": label}) for text, label in zip(TEXTS, LABELS, strict=True)]
    (folder / "films.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "split").mkdir()
    for split, part in (("train", lines[:20]), ("test", lines[20:])):
        (folder / "split" / f"{split}.jsonl").write_text("\n".join(part), encoding="utf-8")
    rows = [{"text": t, "question": q, "label": label} for (t, q), label in zip(PAIRS, LABELS, strict=True)]
    (folder / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return folder


def test_it_prints_the_counts_and_what_they_are_about(run: Run, folder: Path) -> None:
    ended = run(folder / "model", "--data", folder / "films.jsonl", "--radius", 0.01)
    expected = steadygaze.certify(fitted(), TEXTS, radius=0.01)
    assert ended.code == 0
    assert f"{expected.summary()['certified']} of 24 ({percent(expected.share_certified, 1)})" in ended.out
    assert f"{expected.summary()['median_radius']:.4g}" in ended.out
    assert f"{expected.summary()['mean_alpha']:.4g}" in ended.out
    assert "share whose top 7 words cannot change" in ended.out
    assert f"This is about {SCOPE}." in ended.out


def test_it_lists_the_texts_with_the_smallest_radius_and_all_texts_on_request(run: Run, folder: Path) -> None:
    certificates = steadygaze.certify(fitted(), TEXTS, radius=0.01)
    radii = sorted(certificate.radius for certificate in certificates)
    short = run(folder / "model", "--data", folder / "films.jsonl", "--radius", 0.01)
    lines = short.out.split("least certain texts")[1].splitlines()[1:6]
    assert [line.split()[0] for line in lines] == [f"{radius:.4f}" for radius in radii[:5]]
    full = run(folder / "model", "--data", folder / "films.jsonl", "--radius", 0.01, "-v")
    assert full.out.endswith(short.out)
    assert [line.split("\t")[1:] for line in full.out.splitlines()[:24]] == [
        [certificate.label, text] for certificate, text in zip(certificates, TEXTS, strict=True)
    ]


def test_json_is_the_rows_and_nothing_else(run: Run, folder: Path) -> None:
    options = ("--radius", 0.02, "--norm", "l2", "--k", 2, "--simplex", "--reference", folder / "model", "--json")
    result = json.loads(run(folder / "model", "--data", folder / "films.jsonl", *options).out)
    assert result["sentence"] == SCOPE
    assert [row["text"] for row in result["rows"]] == TEXTS
    assert {(row["R"], row["norm"], row["k"], row["simplex"], row["beta"]) for row in result["rows"]} == {
        (0.02, "l2", 2, True, 1.0)
    }
    again = steadygaze.certify(fitted(), TEXTS, 0.02, "l2", 2, True, fitted())
    assert [row["certified"] for row in result["rows"]] == [certificate.certified for certificate in again]
    assert result["summary"]["texts"] == 24


def test_the_test_split_is_taken_unless_another_is_named(run: Run, folder: Path) -> None:
    count = {}
    for options in ((), ("--split", "test"), ("--split", "train")):
        ended = run(folder / "model", "--data", folder / "split", "--radius", 0.01, "--json", *options)
        count[options[-1] if options else ""] = json.loads(ended.out)["summary"]["texts"]
    assert count == {"": 4, "test": 4, "train": 20}


def test_a_corpus_by_its_name(run: Run, folder: Path) -> None:
    ended = run(folder / "model", "--data", "planted-reviews:sizes=[4,4,6]", "--radius", 0.01, "--json")
    assert json.loads(ended.out)["summary"]["texts"] == 6


def test_texts_without_labels_are_certified(run: Run, folder: Path) -> None:
    (folder / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    result = json.loads(run(folder / "model", "--data", folder / "texts.txt", "--radius", 0.01, "--json").out)
    assert [row["text"] for row in result["rows"]] == TEXTS
    options = ("--data", folder / "films.jsonl", "--radius", 0.01, "--label", "stars")
    assert "unknown column 'stars'" in run(folder / "model", *options).err


def test_a_model_with_a_constant_label_is_reported_first(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clf = fitted()
    options = ("--data", folder / "films.jsonl", "--radius", 0.01)
    assert "same label" not in run(folder / "model", *options).out
    constant = steadygaze.load(folder / "model", device="cpu")
    constant.stored_.model.decoder.output.bias.data[0] += 100
    constant.save(folder / "constant")
    first = f"Every text gets the same label, {clf.classes_[0].item()!r}"
    assert run(folder / "constant", *options).out.startswith(f"! {first}")
    assert json.loads(run(folder / "constant", *options, "--json").out)["summary"]["only_label"] == clf.classes_[0]
    assert str(steadygaze.certify(constant, TEXTS)).startswith(first)
    assert steadygaze.certify(constant, TEXTS[:1]).only_label is None  # one text cannot decide
    health = Health((HealthProblem(ProblemKind.CONSTANT_LABEL, label=clf.classes_[0].item()),))
    monkeypatch.setattr(type(constant), "health", health)
    known = steadygaze.certify(constant, TEXTS)
    assert "same label" not in str(known) + str(without_health(known))


def test_a_hugging_face_folder_is_an_error_that_names_the_right_command(run: Run, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    ended = run(tmp_path, "--data", folder / "films.jsonl", "--radius", 0.01)
    assert ended.code == 2
    assert "it is a Hugging Face model, which certify accepts with --substitutions, as do predict, explain" in ended.err


def test_pairs(run: Run, folder: Path) -> None:
    options = ("--text", "text", "--text", "question", "--radius", 0.01, "--json")
    result = json.loads(run(folder / "pair", "--data", folder / "pairs.jsonl", *options).out)
    assert [(row["text"], row["question"]) for row in result["rows"]] == PAIRS


def test_a_decoder_that_is_not_linear_is_refused_and_searched_on_request(run: Run, folder: Path) -> None:
    arguments = (folder / "mlp", "--data", folder / "films.jsonl", "--radius", 0.01)
    refused = run(*arguments)
    assert refused.code == 2
    assert "decoder is not linear" in refused.err
    assert refused.out == ""
    searched = run(*arguments, "--lower-bound")
    assert searched.code == 0
    assert "none: the decoder is not linear" in searched.out
    assert "mean lower bound of α" in searched.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--radius", 0), "radius must be a finite number above 0, found 0.0"),
        (("--radius", -0.5), "radius must be a finite number above 0, found -0.5"),
        (("--radius", "nan"), "radius must be a finite number above 0, found nan"),
        (("--radius", 0.1, "--k", 0), "k must be a whole number from 1 up, found 0"),
        (("--radius", 0.1, "--split", "dev"), "has no split 'dev', only train: name one with --split"),
    ],
)
def test_wrong_settings_end_in_a_sentence_and_code_two(run: Run, folder: Path, options: tuple, message: str) -> None:
    ended = run(folder / "model", "--data", folder / "films.jsonl", *options)
    assert ended.code == 2
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert ended.out == ""


TABLE = {"good": ["fine", "bad"], "film": ["plot", "unseen"], "dull": ["bad"]}


@pytest.fixture(scope="module")
def table(folder: Path) -> Path:
    path = folder / "synonyms.jsonl"
    path.write_text("\n".join(json.dumps({"word": word, "synonyms": row}) for word, row in TABLE.items()))
    return path


def test_substitutions_print_a_summary_and_all_texts_on_request(run: Run, folder: Path, table: Path) -> None:
    options = (folder / "model", "--data", folder / "films.jsonl", "--substitutions", table)
    ended = run(*options)
    expected = steadygaze.certify(fitted(), TEXTS, substitutions=TABLE)
    assert ended.code == 0
    assert f"{expected.summary()['certified']} of 24 ({percent(expected.share_certified, 1)})" in ended.out
    assert "texts whose top 7 words cannot change" in ended.out
    assert f"This is about {substitution_certificates.SCOPE}." in ended.out
    assert len(ended.out.splitlines()) < 12
    full = run(*options, "-v")
    assert full.out.endswith(ended.out)
    assert [line.split("\t")[3] for line in full.out.splitlines()[:24]] == TEXTS


def test_substitutions_as_json(run: Run, folder: Path, table: Path) -> None:
    options = ("--substitutions", table, "--k", 2, "--max-substitutions", 1, "--samples", 9, "--seed", 3, "--json")
    output = json.loads(run(folder / "model", "--data", folder / "films.jsonl", *options).out)
    expected = steadygaze.certify(
        fitted(), TEXTS, k=2, substitutions=TABLE, max_substitutions=1, samples=9, seed=3
    ).to_dict()
    assert output["settings"] == expected["settings"]
    assert [row["top_k_certified"] for row in output["rows"]] == [row["top_k_certified"] for row in expected["rows"]]


def predict_by_length(texts: list[str]) -> list[list[float]]:
    return [[0.9, 0.1] if len(text) % 2 else [0.1, 0.9] for text in texts]


def test_substitutions_in_a_black_box(run: Run, folder: Path, table: Path) -> None:
    name = f"{__name__}:predict_by_length"
    options = ("--substitutions", table, "--classes", "odd,even", "--json")
    output = json.loads(run(name, "--data", folder / "films.jsonl", *options).out)
    assert {row["top_k_certified"] for row in output["rows"]} == {None}
    assert {row["certified"] for row in output["rows"]} == {False}
    assert all(row["counterexample"] for row in output["rows"])
    ended = run(name, "--data", folder / "films.jsonl", *options, "--attention", "rollout")
    assert "attention='rollout' aggregates the heads and layers of a Hugging Face model" in ended.err


def test_one_of_radius_and_substitutions_is_needed(run: Run, folder: Path, table: Path) -> None:
    options = (folder / "model", "--data", folder / "films.jsonl")
    missing = run(*options).err
    assert (
        "pass --radius R (changes of attention weights), --substitutions FILE (changes of words) or --soft" in missing
    )
    both = run(*options, "--radius", 0.1, "--substitutions", table)
    assert both.code == 2
    assert "are about attention weights" in both.err


@pytest.mark.parametrize(
    "options",
    [
        {"classes": "a,b"},
        {"attention": "rollout"},
        {"prompt": "the {text} was"},
        {"label_words": "a=b"},
        {"max_substitutions": 3},
        {"samples": 9},
        {"confidence": 0.9},
        {"set_size": 5},
        {"samples": 9, "set_size": 5},
    ],
    ids=",".join,
)
def test_radius_takes_no_option_of_substitutions(run: Run, folder: Path, options: dict[str, object]) -> None:
    names = {name: "--label-word" if name == "label_words" else f"--{name.replace('_', '-')}" for name in options}
    arguments = [item for name, value in options.items() for item in (names[name], value)]
    ended = run(folder / "model", "--data", folder / "films.jsonl", "--radius", 0.01, *arguments)
    assert ended.code == 2
    assert f"{', '.join(options)} need" in ended.err
    assert ended.out == ""


def test_radius_needs_a_model_of_train(run: Run, folder: Path) -> None:
    ended = run(f"{__name__}:predict_by_length", "--data", folder / "films.jsonl", "--radius", 0.01)
    assert ended.code == 2
    assert "predict_by_length has no attention layer to certify: pass --substitutions FILE" in ended.err


def test_soft_stability_prints_a_summary_and_all_texts_on_request(run: Run, folder: Path) -> None:
    options = (
        folder / "model",
        "--data",
        folder / "films.jsonl",
        "--soft-stability",
        "0.2,2",
        "--explainer",
        "gradient",
    )
    ended = run(*options)
    assert ended.code == 0
    assert "mean soft stability rate of the top 20 % (gradient), with at most 2 added" in ended.out
    assert "24 of 24 (100.0 %)" in ended.out
    assert f"This is about {soft_stability.SCOPE}." in ended.out
    full = run(*options, "-v")
    assert full.out.endswith(ended.out)
    assert [line.split("\t")[3] for line in full.out.splitlines()[:24]] == TEXTS


def test_soft_stability_as_json(run: Run, folder: Path) -> None:
    options = ("--soft-stability", "2,3", "--samples", 5, "--confidence", 0.9, "--seed", 3, "--json")
    output = json.loads(run(folder / "model", "--data", folder / "films.jsonl", *options).out)
    expected = steadygaze.certify(fitted(), TEXTS, soft_stability=(2, 3), samples=5, confidence=0.9, seed=3)
    assert output["settings"] == expected.to_dict()["settings"]
    assert [(row["rate"], row["low"]) for row in output["rows"]] == [(row.rate, row.low) for row in expected]


def test_soft_stability_of_a_black_box(run: Run, folder: Path) -> None:
    options = ("--data", folder / "films.jsonl", "--soft-stability", "2,2", "--classes", "odd,even", "--json")
    output = json.loads(run(f"{__name__}:predict_by_length", *options).out)
    assert output["settings"]["explainer"] == "leave-one-out"
    assert 0 < output["summary"]["mean_rate"] < 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--soft-stability", "five"), "soft_stability must be a pair K,R, such as"),
        (("--soft-stability", "5.5,2"), "K of soft_stability must be a whole number of words from 1 up, or a share"),
        (("--soft-stability", "2,0"), "R of soft_stability must be a whole number from 1 up, found 0"),
        (("--soft-stability", "2,2", "--k", 3), "k cannot be combined with soft_stability="),
        (("--soft-stability", "2,2", "--radius", 0.1), "radius cannot be combined with soft_stability="),
        (("--radius", 0.1, "--explainer", "lime"), "--explainer and --removal are about soft stability"),
    ],
)
def test_wrong_soft_stability_is_refused_before_the_data_is_read(run: Run, options: tuple, message: str) -> None:
    ended = run("no-model", "--data", "no-data.csv", *options)
    assert ended.code == 2
    assert message in ended.err
    assert ended.out == ""


def test_help_shows_an_example(run: Run) -> None:
    ended = run("--help")
    assert ended.code == 0
    assert "steadygaze certify model/ --data reviews.csv --radius 0.01" in ended.out


@pytest.mark.parametrize(
    "options",
    [{"radius": 0.01}, {"substitutions": {"good": ["fine"]}, "samples": 5}, {"soft_stability": (2, 3), "samples": 5}],
    ids=["attention", "substitutions", "soft-stability"],
)
def test_every_certificate_reports_its_progress_up_to_all_texts(options: dict[str, Any]) -> None:
    reports: list[tuple[str, int, int]] = []
    steadygaze.certify(fitted(), TEXTS, **options, batch_size=4, on_progress=lambda *report: reports.append(report))
    assert {(task, total) for task, _, total in reports} == {("certifying", len(TEXTS))}
    assert [done for _, done, _ in reports] == sorted({done for _, done, _ in reports})
    assert reports[-1][1] == len(TEXTS)
