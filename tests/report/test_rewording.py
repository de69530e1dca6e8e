"""Sentences are rendered last: other words change the text of results, and nothing else."""

import ast
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import commands
import steadygaze as sg
from estimator.tiny import LABELS, SMALL, TEXTS, fitted, tiny
from report.audited import full_report
from source_trees import SOURCE, nodes
from steadygaze.properties.commands import complete_commands
from steadygaze.report import sentences
from steadygaze.results import health
from steadygaze.results.advice import AdviceKind
from steadygaze.results.leakage_warnings import CONSTANT, FIDELITY, ONE_LABEL, explainer_health, leakage_warnings
from steadygaze.results.model_card import add_audit_to_card
from steadygaze.results.note import NoteCode
from steadygaze.results.policy import as_policy
from steadygaze.results.row import Row

SENTENCES = {"message", "note", "why"}
"""Keys of JSON with sentences."""
POLICY = as_policy(["accuracy>=2", "jensen-shannon/seeds<=0.1", "comprehensiveness>=-1"])


@contextmanager
def reworded() -> Iterator[None]:
    """Every template is its code with the names of its fields."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TEMPLATES", "ADVICE_TEMPLATES"):
            patch.setattr(sentences, name, {code: _template(code) for code in getattr(sentences, name)})
        patch.setattr(sentences, "CAVEATS", dict.fromkeys(sentences.CAVEATS, "caveat"))
        patch.setattr(sentences, "NOT_APPLICABLE", "absent ({})")
        patch.setattr(health, "SENTENCES", {kind: f"{kind} {{subject}}" for kind in health.SENTENCES})
        yield


def _template(code: str) -> Callable[[Any], str]:
    return lambda fields: f"{code} {{{', '.join(sorted(fields))}}}"


def data(values: Any) -> Any:
    """JSON without the sentences."""
    if isinstance(values, list):
        return [data(item) for item in values]
    if not isinstance(values, dict):
        return values
    return {key: data(item) for key, item in values.items() if key not in SENTENCES}


def written(report: sg.Report) -> Any:
    return json.loads(report.to_json())


def elements(page: str) -> list[str]:
    """The parts of a page, its rows and its cards."""
    return re.findall(r"<(?:article|section|tr|h[1-6]|dt|table|details)\b[^>]*>", page)


def black_box(texts: list[str]) -> list[list[float]]:
    return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]


WRONG = [{"pos": "neg", "neg": "pos"}[label] for label in LABELS]
AUDITS: dict[str, Callable[[], sg.Report]] = {
    "attention": lambda: sg.audit(fitted(), TEXTS, LABELS, explainers=["attention", "leave-one-out"], sample=2),
    "black box": lambda: sg.audit(black_box, TEXTS, sample=2, classes=["neg", "pos"]),
    "wrong labels": lambda: sg.audit(black_box, TEXTS, WRONG, sample=1, classes=["neg", "pos"]),
    "synonyms": lambda: sg.audit(fitted(), TEXTS[:3], LABELS[:3], synonyms={"good": ["fine"]}, sample=2),
    "rationale": lambda: sg.audit(
        tiny(technique="rnp", settings={**SMALL, "granularity": "token"}).fit(TEXTS, LABELS), TEXTS, LABELS, sample=1
    ),
}

SLOW = [name for name in AUDITS if name != "black box"]


@pytest.mark.filterwarnings("ignore::steadygaze.core.errors.HealthWarning")
@pytest.mark.parametrize("name", ["black box", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_other_words_change_no_number_verdict_requirement_or_part_of_a_page(name: str) -> None:
    usual = AUDITS[name]().with_gate(POLICY)
    page, card, lines = (
        elements(usual.to_html()),
        add_audit_to_card("", usual, date.today()),
        str(usual).splitlines(),
    )
    commands_of_advice = complete_commands(usual, {"model": "m", "data": "d"})
    with reworded():
        other = replace(AUDITS[name](), date=usual.date).with_gate(POLICY)
        assert data(written(other)) == data(written(usual))
        assert other.gate is not None
        assert usual.gate is not None
        assert (other.gate.requirements, other.gate.unmet) == (usual.gate.requirements, usual.gate.unmet)
        assert elements(other.to_html()) == page
        assert add_audit_to_card("", other, date.today()).count("\n|") == card.count("\n|")
        assert len(str(other).splitlines()) == len(lines)
        assert str(other).splitlines() != lines
        assert complete_commands(other, {"model": "m", "data": "d"}) == commands_of_advice


def test_a_report_is_read_whatever_words_its_writer_used(tmp_path: Path) -> None:
    usual = AUDITS["attention"]()
    usual.to_json(tmp_path / "usual.json")
    with reworded():
        assert sg.Report.from_json(tmp_path / "usual.json") == usual
        usual.to_json(tmp_path / "other.json")
    assert sg.Report.from_json(tmp_path / "other.json") == usual
    assert (tmp_path / "usual.json").read_text() != (tmp_path / "other.json").read_text()


def test_warnings_of_fitted_explainers_read_codes() -> None:
    rows = [Row(FIDELITY, 0.9, 100, (0.85, 0.95), {"explainer": "l2x"})]
    kinds = ([], [CONSTANT], [ONE_LABEL])
    usual = [leakage_warnings([replace(row, notes=tuple(notes)) for row in rows]) for notes in kinds]
    assert [[warning.code for warning in warnings] for warnings in usual] == [
        [NoteCode.READER_NOT_TRAINED],
        [],
        [NoteCode.ONE_LABEL],
    ]
    with reworded():
        assert [leakage_warnings([replace(row, notes=tuple(notes)) for row in rows]) for notes in kinds] == usual
        assert not explainer_health([replace(rows[0], notes=(CONSTANT,))], "l2x").ok


@pytest.mark.slow
@pytest.mark.usefixtures("fewer_protocols")
def test_other_words_change_no_exit_code(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted().save(tmp_path / "model")
    rows = (f'"{text}",{label}\n' for text, label in zip(TEXTS, LABELS, strict=True))
    (tmp_path / "held.csv").write_text("text,label\n" + "".join(rows))
    monkeypatch.chdir(tmp_path)

    def codes() -> list[int]:
        audit = ("audit", "model", "--data", "held.csv", "--sample", "1", "--device", "cpu", "--json")
        options = (("--bundle", "bundle", "--replace"), ("--require", "accuracy>=2"), ("--require", "nothing<=1"))
        first = [commands.run(capsys, *audit, *option).code for option in options]
        return [*first, commands.run(capsys, "audit", "--verify", "bundle", "--device", "cpu").code]

    assert codes() == [0, 1, 2, 0]
    with reworded():
        assert codes() == [0, 1, 2, 0]


def test_every_code_has_one_template() -> None:
    assert set(sentences.TEMPLATES) == set(NoteCode)
    assert set(sentences.ADVICE_TEMPLATES) == set(AdviceKind)
    assert full_report().verdicts[0].why.endswith(".")


READERS = {"find", "index", "partition", "removeprefix", "removesuffix", "replace", "rpartition", "rsplit", "split"}
READERS |= {"count", "endswith", "rstrip", "startswith", "strip"}
RENDERED = {"note", "why", "caveat", "advice_text", "sentence"}
"""Attributes of findings that are sentences."""


def rendered(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in RENDERED


def test_no_code_searches_a_sentence_of_a_finding() -> None:
    """`Fact.sentence` is a description, not a sentence about a finding."""
    reading = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in sorted(SOURCE.rglob("*.py"))
        if re.search(rf"\.({'|'.join(RENDERED)})\b", path.read_text(encoding="utf-8"))
        for node in nodes(path)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in READERS
            and rendered(node.func.value)
            and ast.unparse(node.func.value) != "fact.sentence"
        )
        or (isinstance(node, ast.Compare) and any(map(rendered, [node.left, *node.comparators])) and _searches(node))
    ]
    assert reading == []


def _searches(node: ast.Compare) -> bool:
    return any(isinstance(operator, ast.In | ast.NotIn | ast.Eq | ast.NotEq) for operator in node.ops)
