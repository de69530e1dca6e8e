"""A property of a user's own module is equal to ours: page, terminal, JSON, requirements, comparison, search."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import steadygaze as sg
from estimator.tiny import LABELS, TEXTS, fitted
from printed_pages import DOCS, blocks
from steadygaze.cli.registry_listing import list_registry
from steadygaze.cli.shared_options import import_modules
from steadygaze.properties import PROPERTIES, check_policy, columns, own_properties
from steadygaze.report.terminal_tables import text
from steadygaze.results.policy import Policy, as_policy
from steadygaze.study.cells import ComparisonJob
from steadygaze.study.code_version import property_sources
from study import test_tune
from study.tiny import config_with, run

NAME, LABEL = "first-word-excess", "Weight of the first word above its share"
SOURCE = blocks((DOCS / "how-to/own-property.md").read_text(encoding="utf-8"), "python")[0]


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The module of the page, imported; its property is forgotten at the end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(PROPERTIES, "data", {**PROPERTIES.data})
    sys.modules.pop("front_loading", None)
    Path("front_loading.py").write_text(SOURCE, encoding="utf-8")
    import_modules(["front_loading"])
    yield
    sys.modules.pop("front_loading")


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [f"{text} {i}" for i in range(4) for text in TEXTS]


def audited(texts: list[str]) -> sg.Report:
    return sg.audit(fitted(), texts, [LABELS[i % len(LABELS)] for i in range(len(texts))], sample=2)


def test_the_module_has_at_most_sixty_lines():
    assert len(SOURCE.strip().splitlines()) <= 60


@pytest.mark.slow
def test_page_terminal_and_json_show_measure_verdict_label_and_advice(texts):
    report = audited(texts)
    (verdict,) = (verdict for verdict in report.verdicts if verdict.key == "front-loading")
    row = report.find(NAME)
    assert row.n > 8
    assert verdict.title == "No front-loading"
    assert verdict.rows == (row.signature,)
    assert verdict.answer != "not measured"
    page = report.to_html()
    assert LABEL in page
    assert "Does the first word get no more weight than the others?" in page
    assert "No front-loading" in text(report)
    restored = sg.Report.from_dict(json.loads(report.to_json()))
    assert restored.label(NAME) == LABEL
    assert restored.scale(NAME) == "0.1: ten percent of the weight"
    assert restored.to_html() == page, "the page needs no module"


def test_a_no_has_the_sentence_and_the_advice_of_the_property():
    from steadygaze.properties.verdict_rules import verdicts
    from steadygaze.results.row import Row

    row = Row(NAME, 0.4, 50, (0.3, 0.5), {"explainer": "attention"})
    (verdict,) = (item for item in verdicts([row], "attention") if item.key == "front-loading")
    assert verdict.answer == "no"
    assert verdict.why == "The first word gets 0.400 more of the attention than its share."
    assert (
        "Train a classifier with another technique: `steadygaze train TRAINING_DATA --technique word-at"
        in verdict.advice_text
    )


def test_requirements_and_policies_know_its_measure_and_its_verdict(texts):
    report = audited(texts)
    assert not report.failing([f"{NAME}<=1"])
    (failure,) = report.failing([f"{NAME}<=-0.9"])
    assert NAME in str(failure)
    policy = as_policy([f"{NAME}<=1"])
    assert check_policy(policy, Policy((), ())) == policy


def test_lists_and_comparisons_have_it():
    assert NAME in {row["name"] for row in list_registry("measures")}
    assert NAME in [column.measure for column in columns()]


def test_workers_register_it_and_cells_depend_on_its_file():
    job = ComparisonJob(None, None, None, "cpu", own_properties=own_properties())
    assert list(job.own_properties) == ["front-loading"]
    del PROPERTIES["front-loading"]
    job.register()
    assert PROPERTIES["front-loading"].title == "No front-loading"
    (digest,) = property_sources()["property_sources"]
    path = Path("front_loading.py")
    path.write_text(path.read_text(encoding="utf-8").replace("1 / mask", "2 / mask"), encoding="utf-8")
    assert property_sources()["property_sources"] != [digest]
    del PROPERTIES["front-loading"]
    assert property_sources() == {}


@pytest.mark.slow
def test_compare_has_its_column(tmp_path):
    comparison = run(tmp_path / "study", config_with())
    (column,) = (column for column in comparison.columns if column.measure == NAME)
    assert column.title == "first word"
    assert all(result.entries[NAME].row.n for result in comparison.standings)
    assert "first word" in comparison.to_html()


@pytest.mark.slow
def test_tune_optimizes_it(tmp_path, monkeypatch):
    monkeypatch.setitem(test_tune.TEXTS, "folder", test_tune.write_texts(tmp_path / "texts"))
    config = test_tune.search(objectives=(NAME,), trials=2, parallel=1, epochs=1)
    tuning = test_tune.run(tmp_path / "search", config)
    assert tuning.objectives == ((NAME, "minimize"),)
    assert len([trial for trial in tuning.trials if trial.values]) == 2
