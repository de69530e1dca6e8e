"""Published tables: their data, the comparisons that they stand for, and a small one run to its end."""

import dataclasses
import json
import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import commands
from steadygaze.core.errors import UserError
from steadygaze.data.corpora import CORPORA, divided
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models.encoders import ENCODERS, TRANSFORMER
from steadygaze.properties import row_names
from steadygaze.results.note import Note, NoteCode
from steadygaze.results.reproduction import Reproduction
from steadygaze.results.row import ValueKey
from steadygaze.study import published_tables as tables
from steadygaze.study.compare import StudyRuntime
from steadygaze.study.compare_config import BETWEEN, check
from steadygaze.study.published_tables import Counterpart, PublishedTable, find_table, published_tables
from steadygaze.study.reproduce import TableRun, _cell_scores, _limits, _score, reproduce, run_missing
from steadygaze.study.study_options import ReproduceOptions
from steadygaze.study.table_blocks import blocks, finished_cells, missing_data
from steadygaze.techniques import TECHNIQUES
from steadygaze.training.progress import TrainingDiverged

TINY = PublishedTable(
    paper="tiny",
    name="table1",
    title="A small table",
    citation="Nobody 2026",
    url="https://example.org",
    claim="One is better.",
    labels={
        "corpora": {"Beer": Counterpart(name="planted-reviews:sizes=[60,20,16]", departure="Made-up reviews.")},
        "encoders": {"Mean": Counterpart(name="average")},
        "techniques": {
            "none": Counterpart(name="vanilla"),
            "weak": Counterpart(name="word-at", settings={"epsilon": 0.1}),
            "strong": Counterpart(name="word-at", settings={"epsilon": 0.5}),
            "secret": Counterpart(absent="It was never published."),
        },
        "variants": {},
        "measures": {"F1": Counterpart(name="macro-f1", scale=100), "Comp": Counterpart(name="comprehensiveness")},
    },
    defaults={"corpora": "Beer", "encoders": "Mean"},
    columns=("F1", "Comp"),
    rows="none | 70 0.1\nweak | 71 -\nstrong | 72 0.3\nsecret | 73 0.4",
)
FEW = {"hidden": 4, "dimension": 6}


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]):
    return partial(commands.run, capsys)


def number(table: str, *labels: str) -> float | None:
    """The paper's number under these labels."""
    (value,) = [e.value for e in find_table(table).entries() if {*labels} <= {*e.labels.values()}]
    return value


def test_every_required_table_is_there() -> None:
    required = {
        "seat": "table1 table2 table3 table4 figure1 figure2",
        "kitada": "table1 table2 figure1 figure3 figure4",
        "bai": "table1 table2 table3 table4 table5 figure3 figure4",
        "a2r": "table2 table4 figure2 figure5",
    }
    names = {f"{paper}/{name}" for paper, of_paper in required.items() for name in of_paper.split()}
    assert names <= published_tables().keys()
    assert set(required) == set(tables.PAPERS)


@pytest.mark.parametrize("name", published_tables())
def test_every_label_stands_for_a_known_name(name: str) -> None:
    table = published_tables()[name]
    used = [entry for entry in table.entries() if not table.absent(entry)]
    for entry in used:
        corpus = divided(table.counterpart(entry, "corpora").name)[1].partition(":")[0]
        encoder = table.counterpart(entry, "encoders").name
        assert corpus in CORPORA
        assert encoder in ENCODERS or encoder.startswith(TRANSFORMER)
        assert table.counterpart(entry, "techniques").name in TECHNIQUES
        assert table.counterpart(entry, "measures").name in row_names()
    assert bool(used) != bool(table.command), "cells or a command, not both"
    slow = any(table.counterpart(entry, "measures").name == "seat-sensitivity" for entry in used)
    assert table.thorough == slow == any(block.config(ReproduceOptions()).thorough for block in blocks(table))
    for block in blocks(table):
        config = block.config(ReproduceOptions())
        check(config)
        for technique in block.techniques.values():
            own = config.training(technique.name).technique
            assert {key: getattr(own, key) for key in technique.settings} == technique.settings


@pytest.mark.parametrize("name", published_tables())
def test_every_number_is_in_one_block(name: str) -> None:
    table = published_tables()[name]
    placed = [id(entry.labels) for block in blocks(table) for entry in block.entries]
    assert len(placed) == len(set(placed)) == sum(not table.absent(entry) for entry in table.entries())
    folders = [block.folder for block in blocks(table)]
    assert len(set(folders)) == len(folders)


@pytest.mark.parametrize(
    ("table", "labels", "value"),
    [  # read from the printed pages
        ("seat/table1", ("RNN", "Vanilla", "Emotion", "TVD"), 20.145),
        ("seat/table1", ("BiLSTM", "SEAT", "SST", "JSD"), 1.80e-08),
        ("seat/table1", ("BERT", "SEAT", "RottenT", "F1"), 0.841),
        ("seat/table2", ("RNN", "SEAT", "Hate", "Suff."), 2.75e-4),
        ("seat/table2", ("BERT", "Attention-iAT", "IMDB", "Comp."), 0.002),
        ("seat/table3", ("Word-iAT", "RottenT", "F1"), 0.852),
        ("seat/table4", ("BiLSTM", "L3 and Ltopk", "Suff."), 4.37e-06),
        ("kitada/table1", ("IMDB", "vocab"), 12485),
        ("kitada/table2", ("Attention iAT", "SST", "Corr"), 0.876),
        ("kitada/table2", ("Attention RP", "bAbI 2", "Acc"), 80.60),
        ("kitada/table2", ("Attention iAT", "MultiNLI mismatched", "Micro-F1"), 60.93),
        ("bai/table1", ("Pooling", "pos", "A"), 68.0),
        ("bai/table2", ("Weighting", "RCNN", "neg", "Total"), 20.8),
        ("bai/table3", ("L2X with ŷ", "IMDB"), 48.8),
        ("a2r/table2", ("Palate", "Skew15", "RNP", "X1%"), 83.1),
        ("a2r/table2", ("Aroma Biased0.8", "A2R", "F1"), 53.2),
        ("a2r/table4", ("A2R", "F1"), 34.9),
        ("kitada/figure4", ("Word AT", "SST", "ε = 30"), None),
    ],
)
def test_numbers_of_the_papers(table: str, labels: tuple[str, ...], value: float | None) -> None:
    assert number(table, *labels) == value


def test_totals_of_printed_rows() -> None:
    """A transcription error would break a sum or a count."""
    for name in ("bai/table1", "bai/table2"):
        rows: dict[tuple[str, ...], list[float]] = {}
        for entry in find_table(name).entries():
            key = tuple(entry.label(axis) for axis in tables.AXES[:4])
            rows.setdefault(key, []).append(entry.value or 0.0)
        assert all(sum(values[:4]) == pytest.approx(values[4], abs=0.11) for values in rows.values())
    sizes = {name: len(find_table(name).entries()) for name in ("seat/table1", "seat/table2", "seat/table3")}
    assert sizes == {"seat/table1": 252, "seat/table2": 252, "seat/table3": 84}
    accuracy = {
        e.label("corpora"): e.value
        for e in find_table("kitada/table2").entries()
        if e.label("techniques") == "Vanilla" and "Micro" in e.label("measures")
    }
    assert accuracy["MultiNLI average"] == pytest.approx(
        ((accuracy["MultiNLI"] or 0) + (accuracy["MultiNLI mismatched"] or 0)) / 2, abs=0.006
    )


def test_only_restricts_the_axes_it_names() -> None:
    table = find_table("seat/table1")
    (block,) = blocks(table, ("sst2", "BiLSTM"))
    assert (block.corpus.name, block.encoder.name, len(block.techniques), len(block.entries)) == (
        "sst2",
        "bilstm",
        7,
        21,
    )
    assert len(blocks(table, ("minilm",))) == 4
    (pair,) = blocks(table, ("sst2", "rnn", "seat"))
    assert pair.names == ("vanilla", "seat")
    assert pair.folder != blocks(table, ("sst2", "rnn"))[0].folder
    with pytest.raises(UserError, match="did you mean 'sst2'"):
        blocks(table, ("sst-2",))


def test_settings_of_one_technique_divide_a_block() -> None:
    assert [block.names for block in blocks(TINY)] == [("vanilla", "word-at")] * 2
    assert [block.config(ReproduceOptions()).settings_for for block in blocks(TINY)] == [
        {"word-at": {"epsilon": 0.1}},
        {"word-at": {"epsilon": 0.5}},
    ]
    ablation = blocks(find_table("seat/table4"), ("rnn",))
    assert [block.config(ReproduceOptions()).settings_for for block in ablation] == [
        {"seat": {"overlap": 0.0}},
        {"seat": {"stability": 0.0}},
        {},
    ]


def test_corpora_without_training_texts_are_missing(tmp_path: Path) -> None:
    (tmp_path / "sst2").mkdir()
    (tmp_path / "sst2" / "train.parquet").touch()
    assert missing_data(find_table("seat/table4"), tmp_path) == []
    assert missing_data(find_table("seat/figure2"), tmp_path) == ["rotten_tomatoes", "tweet_emotion", "tweet_hate"]
    assert missing_data(find_table("a2r/table2"), tmp_path) == []


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_a_table_is_run_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command) -> None:
    options = ReproduceOptions(seeds=2, epochs=1, settings=FEW)
    runtime = StudyRuntime(tmp_path, device="cpu")
    result = reproduce(TINY, options, runtime)
    assert [value.paper for value in result.values] == [70, 0.1, 71, None, 72, 0.3, 73, 0.4]
    scores = [
        json.loads((tmp_path / f"tiny/table1/planted-reviews-sizes-60-20-16_average_{i}/comparison.json").read_text())
        for i in (1, 2)
    ]
    expected = [scores[0]["techniques"][0], scores[0]["techniques"][1], scores[1]["techniques"][1]]
    f1 = [value for value in result.values[:6] if value.measure == "macro-f1"]
    assert [value.value for value in f1] == pytest.approx(
        [100 * technique["numbers"]["macro-f1"]["value"] for technique in expected]
    )
    for value in result.values[:6]:
        assert value.value is not None
        assert value.interval is not None
        assert value.interval[0] <= value.value <= value.interval[1]
    assert result.values[6].note == "It was never published."
    page = (tmp_path / "tiny/table1/table.md").read_text()
    assert "| Beer | Mean | none | F1 | 70 | " in page
    assert "not printed" in page
    assert "- Made-up reviews." in page
    assert "<h1>tiny/table1: A small table</h1>" in (tmp_path / "tiny/table1/table.html").read_text()
    assert finished_cells(TINY, tmp_path, options) == (8, 8)

    def refuse(*_: object) -> None:
        raise AssertionError("a finished cell ran again")

    monkeypatch.setattr("steadygaze.study.cells.train", refuse)
    assert reproduce(TINY, options, runtime).to_dict() == result.to_dict()
    monkeypatch.setattr("steadygaze.study.published_tables.published_tables", lambda: {TINY.key: TINY})
    listed = json.loads(command("reproduce", "list", "--seeds", "2", "--out", tmp_path, "--json").out)
    assert listed == [{"name": "tiny/table1", "title": "A small table", "missing": [], "cells": 8, "finished": 8}]
    arguments = ["reproduce", TINY.key, "--seeds", "2", "--epochs", "1", "--set", "hidden=4", "--set", "dimension=6"]
    ended = command(*arguments, "--device", "cpu", "--workers", "1", "--out", tmp_path)
    assert (ended.code, "| Beer | Mean | strong | Comp | 0.3 | " in ended.out) == (0, True)
    records = tmp_path / TINY.key / "records.jsonl.gz"
    printed = command("reproduce", TINY.key, "--records", records)
    assert (printed.code, printed.out) == (0, ended.out)
    unused = command("reproduce", TINY.key, "--records", records, "--seeds", 3, "--device", "cpu")
    assert (unused.code, "runs nothing: remove --seeds, --device" in unused.err) == (2, True)
    wrong = command("reproduce", TINY.key, "--records", tmp_path / TINY.key / "table.md")
    assert (wrong.code, "does not have the records of a table" in wrong.err) == (2, True)
    shutil.rmtree(tmp_path / TINY.key / "planted-reviews-sizes-60-20-16_average_2" / "cells" / "word-at-1")
    partial_table = command("reproduce", TINY.key, "--seeds", "2", "--out", tmp_path, "--finished")
    assert "| Beer | Mean | strong | Comp | 0.3 | not run |" in partial_table.out
    assert "| Beer | Mean | weak | F1 | 71 | not run |" not in partial_table.out
    unused = command("reproduce", TINY.key, "--out", tmp_path, "--finished", "--workers", 2, "--device", "cpu")
    assert (unused.code, "runs nothing: remove --workers, --device" in unused.err) == (2, True)


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_validation_scores_choose_settings(tmp_path: Path) -> None:
    searched = Counterpart(name="word-at", search={"epsilon": [0.1, 0.5]})
    techniques = {"none": Counterpart(name="vanilla"), "chosen": searched}
    table = dataclasses.replace(
        TINY, labels={**TINY.labels, "techniques": techniques}, columns=("F1",), rows="none | 70\nchosen | 71"
    )
    options = ReproduceOptions(seeds=2, epochs=1, train_limit=40, settings=FEW, notes=("A note.",))
    result = reproduce(table, options, StudyRuntime(tmp_path, device="cpu"))
    folder = tmp_path / "tiny/table1"
    tried = [
        json.loads(
            (folder / f"planted-reviews-sizes-60-20-16_average_search/cells/word-at-{i}/record.json").read_text()
        )
        for i in (0, 1)
    ]
    best = max(tried, key=lambda record: record["result"]["macro-f1"])["result"]["settings"]["epsilon"]
    _, cells = Reproduction.from_records(folder / "records.jsonl.gz")
    assert {cell.settings.get("epsilon") for cell in cells if cell.technique == "word-at"} == {best}
    assert result.facts["Beer, word-at"].startswith(f"epsilon = {best:g} (validation macro-F1: epsilon = 0.1: ")
    limits = "16 test texts, 2 seeds, at most 40 training texts, at most 1 epochs, patience 3"
    assert f"planted-reviews:sizes=[60,20,16]: {limits}." in result.departures
    assert "A note." in result.departures
    scores = [cell.scores["macro-f1"] for cell in cells if cell.technique == "vanilla"]
    assert len(scores) == 2
    assert result.values[0].value == pytest.approx(100 * sum(scores) / 2, rel=1e-5)


def test_the_distance_between_seeds_of_a_model_is_its_mean_over_the_other_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two texts; the second is too short to be measured."""
    pairs = {(0, 1): 1.0, (0, 2): 2.0, (1, 2): 6.0}
    arrays = {ValueKey(BETWEEN, "attention", pair): np.array([value, np.nan]) for pair, value in pairs.items()}
    monkeypatch.setattr("steadygaze.study.reproduce.read_arrays", lambda _: arrays)
    cells = {
        "vanilla": [SimpleNamespace(seed=seed, values_of=lambda _: Note(NoteCode.NOT_MEASURED)) for seed in (7, 8, 9)]
    }
    block = SimpleNamespace(folder="b", measures=[str(BETWEEN)])
    scores = list(_cell_scores(block, cells, tmp_path))
    assert [(score.seed, score.scores) for score in scores] == [(7, {str(BETWEEN): 1.5}), (8, {str(BETWEEN): 3.5}),
                                                                (9, {str(BETWEEN): 4.0})]  # fmt: skip
    value, _, note = _score(str(BETWEEN), cells["vanilla"], tmp_path)
    assert (value, note) == (pytest.approx(sum(score.scores[str(BETWEEN)] for score in scores) / 3), "")
    assert _score(str(BETWEEN), cells["vanilla"][:1], tmp_path) == (None, None, "it needs two seeds")
    alone = list(_cell_scores(block, {"vanilla": cells["vanilla"][:1]}, tmp_path))
    assert [score.scores for score in alone] == [{}]


def test_the_interval_of_few_seeds_is_widened_as_in_a_comparison(tmp_path: Path) -> None:
    """0.2 and 0.4: the bootstrap alone gives 0.2 to 0.4; two seeds stretch it by 9.17, within the bounds."""
    cells = [SimpleNamespace(values_of=lambda _, v=v: np.array([v]), outcomes=None) for v in (0.2, 0.4)]
    value, interval, _ = _score("comprehensiveness", cells, tmp_path)
    assert value == pytest.approx(0.3)
    assert interval == pytest.approx((0.3 - 0.9168, 1), abs=1e-4)
    assert _score("macro-f1", cells, tmp_path)[1] == (0, 1)
    labels = np.array([0, 1] * 20)
    for cell in cells:
        cell.outcomes = labels, labels
    assert _score("macro-f1", cells, tmp_path)[1] == (1, 1), "texts and their predictions are resampled"


class _Chosen(Exception):
    """The chosen settings of a search."""


@pytest.fixture
def search_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that searches an epsilon of 0.1 or 0.5, of which training 0.5 raises the given error."""

    def search(error: Exception) -> None:
        def train(clf: TextClassifier, *_: object, **__: object) -> object:
            if clf.settings["epsilon"] == 0.5:
                raise error
            description = SimpleNamespace(best_epoch={"macro-f1": 0.7})
            return SimpleNamespace(stored_=SimpleNamespace(description=description))

        def begin(_: object, stacks: bool, chosen: object) -> None:
            raise _Chosen(chosen)

        monkeypatch.setattr("steadygaze.estimator.resumable_training.train", train)
        monkeypatch.setattr("steadygaze.study.reproduce._Part.begin", begin)
        searched = Counterpart(name="word-at", search={"epsilon": [0.1, 0.5]})
        techniques = {"none": Counterpart(name="vanilla"), "chosen": searched}
        labels = {**TINY.labels, "techniques": techniques}
        table = dataclasses.replace(TINY, labels=labels, columns=("F1",), rows="none | 70\nchosen | 71")
        options = ReproduceOptions(seeds=1, epochs=1, settings=FEW)
        run_missing([TableRun(table, options)], StudyRuntime(tmp_path, device="cpu"))

    return search


def test_a_search_with_a_failed_cell_chooses_nothing(search_with) -> None:
    with pytest.raises(UserError, match=r"1 of 2 cells failed: .*word-at with .*0\.5.*: OSError: disk full"):
        search_with(OSError("disk full"))


def test_a_model_that_diverges_is_not_chosen(search_with) -> None:
    with pytest.raises(_Chosen) as chosen:
        search_with(TrainingDiverged("training diverged"))
    assert chosen.value.args[0] == {"word-at": {"epsilon": 0.1}}


@pytest.mark.parametrize(("name", "data"), [("seat/table1", "sst2, rnn"), ("kitada/table2", "sst2")])
def test_limits_name_the_encoder_if_a_table_has_several(name: str, data: str, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(json.dumps({"data": {"texts": 1821}, "seeds": [0, 1]}))
    block = next(block for block in blocks(find_table(name)) if block.corpus.name == "sst2")
    assert list(_limits(find_table(name), block, tmp_path)) == [f"{data}: 1,821 test texts, 2 seeds."]


def test_tables_that_a_command_measures_and_wrong_names(command, tmp_path: Path) -> None:
    ended = command("reproduce", "bai/table3", "--out", tmp_path)
    assert ended.code == 0
    assert (
        "| IMDB | CNN | L2X with ŷ | post-hoc accuracy | 48.8 | measured by: python -m studies run black_boxes"
        in ended.out
    )
    wrong = command("reproduce", "seat/tabel1", "--out", tmp_path)
    assert (wrong.code, "did you mean 'seat/table1'" in wrong.err) == (2, True)
    without = command("reproduce", "seat/table3", "--out", tmp_path)
    assert (without.code, "--synonyms FILE" in without.err) == (2, True)
    assert "seat/table1" in command("list", "tables").out
