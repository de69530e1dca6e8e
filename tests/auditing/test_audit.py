"""The whole audit: it leaves the model unchanged, counts every text, and does not depend on the order of the texts."""

import copy
import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from adapters.folders import TEXTS, save
from properties.oracles import CLASSES, oracle_adapter, world
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.auditing.audit import audit, checks_of, run_audit
from steadygaze.auditing.prepare_case import AuditRequest, fingerprint
from steadygaze.core.errors import UserError
from steadygaze.core.types import Example
from steadygaze.properties import all_measures, row_names, rows_under
from steadygaze.properties.audit_case import NO_LABELS
from steadygaze.properties.protocols.stability import NO_SYNONYMS
from steadygaze.properties.protocols.wiegreffe_pinter import TRAINED
from steadygaze.report.sentences import PASS_TABLE
from steadygaze.results.audit_config import ProbeConfig, Runtime
from steadygaze.results.note import NoteCode
from steadygaze.results.report import Report
from study.tiny import quicken

ROUNDING = 1e-9
FEW = {"sample": 4}
CONFIG = ProbeConfig(sample=4)

SUBSTITUTED = ("1-synonym", "3-synonyms", "1-synonym-kept", "3-synonyms-kept", "reworded", "reworded-top")
"""Conditions that need a synonym table."""


@pytest.fixture(scope="module")
def here():
    return world(0, texts=24)


@pytest.fixture(scope="module")
def honest_report(here) -> Report:
    return report(here, here.examples)


def counted(texts):
    """A black box, as good as its good words."""
    good = np.array([text.count("fine") - text.count("poor") for text in texts], float)
    p = 1 / (1 + np.exp(-3 * good))
    return np.stack([1 - p, p], 1)


def report(here, examples, name: str = "honest", batch_size: int = 256, **plan) -> Report:
    config, runtime = ProbeConfig(**{**FEW, **plan}), Runtime(batch_size=batch_size)
    request = AuditRequest(oracle_adapter(name, here, 0), examples, config, ("attention", "leave-one-out"))
    return run_audit(replace(request, synonyms=here.synonyms, facts={"corpus": "toy"}, runtime=runtime)).report()


def numbers(report: Report) -> dict[str, tuple[float, int]]:
    return {f"{row.measure}|{row.settings.get('explainer')}": (row.value, row.n) for row in report.rows}


def assert_same(report: Report, other: Report, *, rounding: float = ROUNDING) -> None:
    first, second = numbers(report), numbers(other)
    assert first.keys() == second.keys()
    for name, (value, n) in first.items():
        assert n == second[name][1], name
        assert value == pytest.approx(second[name][0], abs=rounding, nan_ok=True), name


def test_every_number_is_in_the_catalog_and_within_its_bounds(honest_report):
    for row in honest_report.rows:
        low, high = all_measures()[row.measure.partition("/")[0]].bounds
        assert row.n == 0 or low - ROUNDING <= row.value <= high + ROUNDING or "/above-" in row.measure, row


def test_every_text_is_counted_or_reported_as_left_out(honest_report, here):
    for row in honest_report.rows:
        short = row.n < len(here.examples)
        assert not short or row.note or "sample" in row.settings, row


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    ("model", "explainers", "plan"),
    [
        ("honest", (), {}),
        pytest.param(
            "honest",
            ("attention", "gradient", "leave-one-out", "lime", "random"),
            {"thorough": True},
            marks=pytest.mark.slow,
        ),
        ("honest", ("gradient",), {}),
        ("honest", ("random",), {"thorough": True}),
        (counted, (), {}),
        (counted, ("gradient", "leave-one-out"), {"thorough": True, "removal": "zero"}),
    ],
)
def test_every_number_there_is_has_a_row_a_value_or_the_reason_why_not(here, model, explainers, plan):
    """Each once, for every model; of models that were not trained alike only if there are some."""
    examined = oracle_adapter(model, here, 0) if isinstance(model, str) else as_adapter(model, classes=CLASSES)
    request = AuditRequest(examined, here.examples[:12], ProbeConfig(**{**FEW, **plan}), explainers)
    rows = run_audit(request).report().rows
    named = [(row.measure, row.settings.get("explainer")) for row in rows]
    assert len(set(named)) == len(named)
    assert {measure for measure, _ in named} == set(row_names()) - set(rows_under("others", "repeated"))
    assert all(row.n or row.absent for row in rows)


@pytest.mark.slow
def test_a_measure_that_was_not_run_is_reported_once_with_the_reason(here):
    result = run_audit(
        AuditRequest(oracle_adapter("honest", here, 0), here.examples, CONFIG, synonyms=here.synonyms)
    ).report()
    silent = {row.measure: str(row.absent) for row in result.rows if not row.n}
    for name in ("flip-radius", "flip-radius/above-random", "seat-sensitivity"):
        assert silent[name] == "it runs only in a thorough audit: it needs hundreds of forward passes per text"
    for name in TRAINED:
        assert silent[name] == "only a TextClassifier can be retrained"
    outside = run_audit(AuditRequest(as_adapter(counted, classes=CLASSES), here.examples, CONFIG)).report()
    assert outside.find("accuracy/uniform").note.endswith("because only a TextClassifier can be retrained")
    assert outside.verdicts[0].answer == "not measured"
    assert outside.verdicts[0].why == ("There is no synonym table: pass a synonym table as synonyms= (--synonyms)."), (
        "which can be given, where vectors cannot"
    )
    own = run_audit(AuditRequest(oracle_adapter("honest", here, 0), here.examples, CONFIG)).report()
    for report in (outside, own):
        without = [row.measure for row in report.rows if row.absent == NO_SYNONYMS]
        assert sorted(without) == sorted(rows_under(*SUBSTITUTED))
    assert own.verdicts[0].answer != "yes"


def test_an_explainer_that_the_model_does_not_support_is_reported_as_left_out(here):
    model = as_adapter(counted, classes=CLASSES)
    result = run_audit(AuditRequest(model, here.examples, CONFIG, ("gradient", "leave-one-out"))).report()
    why = "the model is a black box: its word vectors cannot be perturbed"
    assert list(map(str, result.notes)) == [f"The explainer gradient was not audited: {why}."]
    assert result.find("comprehensiveness", "gradient").note == f"not applicable, because {why}"
    assert result.find("comprehensiveness", "leave-one-out").n == len(here.examples)


@pytest.mark.slow
def test_the_model_is_left_bit_for_bit_as_it_was(here):
    audited = oracle_adapter("honest", here, 0)
    model = audited.model.train()
    model.decoder.output.weight.grad = torch.ones_like(model.decoder.output.weight)
    before = copy.deepcopy(model.state_dict())
    hooks = [len(part._forward_hooks) + len(part._backward_hooks) for part in model.modules()]
    drawn = torch.get_rng_state(), np.random.get_state()[1].tolist()
    explainers = ("attention", "gradient", "integrated-gradients", "leave-one-out", "lime", "kernel-shap", "random")
    run_audit(AuditRequest(audited, here.examples[:3], CONFIG, explainers, synonyms=here.synonyms)).report()
    assert all(part.training for part in model.modules())
    assert all(value.equal(before[name]) for name, value in model.state_dict().items())
    assert model.decoder.output.weight.grad.eq(1).all()
    assert all(
        parameter.grad is None for name, parameter in model.named_parameters() if name != "decoder.output.weight"
    )
    assert hooks == [len(part._forward_hooks) + len(part._backward_hooks) for part in model.modules()]
    assert drawn[0].equal(torch.get_rng_state())
    assert drawn[1] == np.random.get_state()[1].tolist()


def test_the_same_audit_again_gives_the_same_bits(honest_report, here):
    assert_same(honest_report, report(here, here.examples), rounding=0.0)


@pytest.mark.slow  # each protocol has such a test
def test_how_many_texts_are_read_at_once_changes_nothing(honest_report, here):
    assert_same(honest_report, report(here, here.examples, batch_size=5))


@pytest.mark.slow  # each protocol has such a test
def test_the_order_of_the_texts_changes_no_mean(here):
    """All texts are in the sample, so that the same ones are measured."""
    expected = report(here, here.examples, sample=len(here.examples))
    assert_same(expected, report(here, here.examples[::-1], sample=len(here.examples)))


OF_ALL_TEXTS = ("position-leak", "content-leak", "encode-meter", "flip-radius", "flip-radius/above-random")
"""A reader is trained on all texts; the radius of a change has the spread of their vectors."""


@pytest.mark.slow
def test_a_long_text_beside_the_others_changes_none_of_their_numbers(here):
    long = Example(" ".join(["thinga"] * 120), "good")
    short_audit = run_audit(
        AuditRequest(oracle_adapter("honest", here, 0), here.examples, CONFIG, synonyms=here.synonyms)
    )
    long_audit = run_audit(
        AuditRequest(oracle_adapter("honest", here, 0), [*here.examples, long], CONFIG, synonyms=here.synonyms)
    )
    other = {(f.measure, f.explainer): f.values for f in long_audit.findings if f.values is not None}
    for finding in short_audit.findings:
        whole = finding.values is not None and len(finding.values) == len(here.examples)
        filled = finding.measure.endswith(("-filled", "/unaccounted"))  # by words of all texts
        if whole and not filled and finding.measure not in OF_ALL_TEXTS:
            values = other[finding.measure, finding.explainer][: len(here.examples)]
            has_both = finding.values.isfinite() & values.isfinite()
            torch.testing.assert_close(finding.values[has_both], values[has_both], rtol=0, atol=ROUNDING)


def test_texts_without_labels_are_audited_without_what_needs_them(here):
    result = report(here, [replace(example, label=None) for example in here.examples])
    assert {row.measure for row in result.rows if row.absent == NO_LABELS} == {
        "accuracy",
        "macro-f1",
        "expected-calibration-error",
    }
    assert result.find("comprehensiveness").n == len(here.examples)


def test_a_text_that_is_empty_once_words_are_erased_has_its_number(here):
    result = report(here, [Example("finea", "good"), Example("poora thinga", "bad"), *here.examples[:4]])
    assert math.isfinite(result.find("comprehensiveness").value)
    assert result.find("comprehensiveness").n == 6


def test_one_model_alone_has_no_seeds_to_compare_and_a_note_reports_it(honest_report):
    row = honest_report.find("jensen-shannon/seeds")
    assert row.n == 0
    assert row.note.startswith("not applicable, because only one model was passed: ")
    assert row.note.endswith("pass models trained with other seeds as other_seeds= (--other-seed MODEL)")


@pytest.mark.slow
def test_models_of_other_seeds_are_compared(here):
    others = [oracle_adapter("honest", here, 1), oracle_adapter("first", here, 2)]
    request = AuditRequest(
        oracle_adapter("honest", here, 0), here.examples, CONFIG, others=others, synonyms=here.synonyms
    )
    row = run_audit(request).report().find("jensen-shannon/seeds")
    assert row.settings["models"] == 3
    assert 0.1 < row.value < math.log(2)  # two alike, one that looks elsewhere: 2/3 of the pairs are far apart


def test_a_black_box_is_audited_as_far_as_possible_and_the_rest_is_reported(here):
    texts, labels = [e.text for e in here.examples], [e.label for e in here.examples]
    result = audit(counted, texts, labels, classes=CLASSES, synonyms=here.synonyms, **FEW)
    assert result.find("accuracy").value == 1
    assert result.facts["explanation"] == "leave-one-out"
    assert result.find("comprehensiveness/above-random").interval[0] > 0.1
    assert result.find("jensen-shannon/1-synonym").n > 0
    assert "black box" in result.find("jensen-shannon/noise").note


def test_where_no_text_has_a_number_the_reason_that_was_found_is_kept(here):
    texts = [e.text for e in here.examples]
    report = audit(oracle_adapter("honest", here, 0), texts, synonyms={"unheard": ["unseen"]}, **FEW)
    row = report.find("jensen-shannon/1-synonym")
    assert (row.n, row.note) == (
        0,
        "not applicable, because the measure is not defined for any text "
        f"(left out: 24 of 24 texts, which have fewer than two words, or too few with a synonym: {PASS_TABLE})",
    )
    reworded, stable = report.find("weight-correlation/reworded-top"), report.verdicts[0]
    assert reworded.note == row.note
    assert stable.answer == "not measured"
    assert stable.reasons == (reworded.absent,)
    assert stable.why == f"The measure{row.note.partition('the measure')[2]}."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"texts": []}, "no texts"),
        ({"labels": ["good"]}, "24 texts and 1 labels"),
        ({"labels": ["great"] * 24}, "'great'.*its classes are 'bad', 'good'"),
        ({"rationales": [None]}, "24 texts and 1 rationales"),
        ({"explainers": ["attentoin"]}, "attention"),
        ({"texts": [("a", "b")] * 24}, "single texts"),
    ],
)
def test_wrong_arguments_are_errors_of_one_sentence(here, change, message):
    arguments = {"texts": [e.text for e in here.examples], "labels": [e.label for e in here.examples], **change}
    if not arguments["texts"]:
        arguments["labels"] = []
    with pytest.raises(UserError, match=message):
        audit(oracle_adapter("honest", here, 0), arguments.pop("texts"), arguments.pop("labels"), **arguments)


def test_the_package_itself_imports_nothing_heavy():
    code = "import sys, steadygaze as sg; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.slow
@pytest.mark.usefixtures("fewer_protocols")
def test_a_hugging_face_model_is_loaded_on_the_requested_device_with_the_requested_attention(tmp_path):
    """Two ways to look at one model are two signatures; what is not about attention has one."""
    folder = save("bert", tmp_path / "bert")
    last, rolled = (
        audit(folder, TEXTS, explainers=["attention"], **FEW, device="cpu", attention=how)
        for how in ("last", "rollout")
    )
    for name in ("normalized-entropy", "default-mass", "comprehensiveness"):
        assert (last.find(name).settings["attention"], rolled.find(name).settings["attention"]) == ("last", "rollout")
    assert "attention" not in last.find("comprehensiveness", "random").settings
    assert last.find("label-flip/noise").signature == rolled.find("label-flip/noise").signature
    with pytest.raises(UserError, match="unknown attention 'first'"):
        audit(folder, TEXTS, attention="first")
    with pytest.raises(UserError, match="device"):
        audit(folder, TEXTS, device="abacus")


@pytest.mark.slow
@pytest.mark.usefixtures("fewer_protocols")
def test_the_signature_names_the_texts_labels_and_synonyms(here, monkeypatch):
    quicken(monkeypatch)
    texts_and_labels = [e.text for e in here.examples], [e.label for e in here.examples]

    def row_of(texts, labels, measure, **more):
        return audit(oracle_adapter("honest", here, 0), texts, labels, **FEW, **more).find(measure)

    row = row_of(*texts_and_labels, "accuracy")
    assert row.settings["data"] == fingerprint([replace(e, rationales=None) for e in here.examples])[:12]
    assert row.signature == row_of(np.array(texts_and_labels[0]), np.array(texts_and_labels[1]), "accuracy").signature
    assert (
        row.signature
        != row_of(
            [f"{texts_and_labels[0][0]} thinga", *texts_and_labels[0][1:]], texts_and_labels[1], "accuracy"
        ).signature
    )
    assert row.signature != row_of(texts_and_labels[0], texts_and_labels[1][::-1], "accuracy").signature
    moved = "jensen-shannon/1-synonym"
    tables = [here.synonyms, dict(list(here.synonyms.items())[1:])]
    ways = [row_of(*texts_and_labels, moved, synonyms=table).settings["synonyms"] for table in tables]
    assert all(way.startswith("table-") for way in ways)
    assert ways[0] == row_of(*texts_and_labels, moved, synonyms=dict(here.synonyms)).settings["synonyms"] != ways[1]
    assert not row_of(*texts_and_labels, moved).n


def test_chosen_measures_leave_out_other_protocols(here) -> None:
    whole = run_audit(AuditRequest(oracle_adapter("honest", here, 0), here.examples, CONFIG)).report()
    chosen = frozenset({"macro-f1", "jensen-shannon/noise", "pearson/gradient"})
    result = run_audit(AuditRequest(oracle_adapter("honest", here, 0), here.examples, CONFIG, measures=chosen)).report()
    for name in chosen:
        assert result.find(name) == whole.find(name)
    assert result.find("jensen-shannon/fgm-label") is None
    assert result.find("comprehensiveness") is None
    assert result.notes[0].code == NoteCode.CHOSEN_MEASURES


@pytest.mark.parametrize("measures", [(), ("macro-f1", "reliance/first")])
def test_measures_of_other_protocols_need_the_whole_audit(measures: tuple[str, ...]) -> None:
    assert checks_of(measures) is None
