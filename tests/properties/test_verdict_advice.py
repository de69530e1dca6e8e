"""Advice for undecided verdicts, with numbers worked by hand."""

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import steadygaze as sg
from estimator.tiny import LABELS, TEXTS, tiny
from steadygaze.auditing import audit_report
from steadygaze.cli import COMMANDS
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.learned import METHODS
from steadygaze.properties import PROPERTIES, verdict_rules
from steadygaze.properties.commands import AuditCommands, complete_commands, rerun_command
from steadygaze.properties.property import FEWEST, FEWEST_FOR_YES
from steadygaze.properties.protocols.stability import NO_SYNONYMS
from steadygaze.properties.verdict_rules import AdviceContext, deciding_texts, verdicts
from steadygaze.report.audit_page import render
from steadygaze.report.sentences import paragraph
from steadygaze.report.terminal_tables import text
from steadygaze.results.advice import Advice, AdviceKind
from steadygaze.results.note import NoteCode, note
from steadygaze.results.report import Report
from steadygaze.results.row import Row, Verdict
from steadygaze.techniques import TECHNIQUES

LIMITS = {"jensen-shannon/noise": (0.005, 0.02), "comprehensiveness/above-random": (0.05, 0.02)}
SHIFT, ERASURE = LIMITS
REWORDED = "weight-correlation/reworded"
"""A row of the verdict about stability: yes from 0.7 up, no up to 0.65."""
ONE_CLASS = note(NoteCode.FEW_TEXTS_OF_A_CLASS, least=20, classes=[("good", 40), ("bad", 2)], more=False)


def advise(*arguments, **options) -> str:
    return paragraph(verdict_rules.advise(*arguments, **options))


def advise_after_no(*arguments) -> str:
    return paragraph([verdict_rules.advise_after_no(*arguments)])


def row(name: str, value: float, low: float, high: float, n: int = 100) -> Row:
    return Row(name, value, n, (low, high), {"explainer": "attention"})


def of(key: str, rows: Sequence[Row], context: AdviceContext = verdict_rules.UNKNOWN) -> Verdict:
    return next(verdict for verdict in verdicts(rows, "attention", context) if verdict.key == key)


HARDLY = note(NoteCode.NOTHING_MATTERS, own=0.0, floor=0.0, best=1e-4)
UNREACHED = [
    Row(name, math.nan, 0, None, {"explainer": "attention"}, absent=HARDLY)
    for name in PROPERTIES["faithfulness"].rule.required
]
GOOD_RANDOMIZED = row("kendall/randomized", 0.1, 0.0, 0.2)


@pytest.mark.parametrize(
    ("name", "value", "low", "high", "expected"),
    [
        (SHIFT, 0.004, 0.003, 0.006, 400),  # 0.001 inside the threshold, the interval reaches 0.002 up
        (SHIFT, 0.030, 0.010, 0.040, 400),  # 0.010 beyond the threshold of no, 0.020 down
        (SHIFT, 0.010, 0.009, 0.011, math.inf),
        (ERASURE, 0.060, 0.030, 0.070, 900),  # higher is better: 0.01 inside, 0.03 down
        (ERASURE, 0.010, 0.005, 0.040, 900),  # 0.01 beyond the threshold of no, 0.03 up
        (ERASURE, 0.030, 0.000, 0.060, math.inf),
    ],
)
def test_the_number_of_texts_by_hand(name, value, low, high, expected):
    assert deciding_texts(row(name, value, low, high), *LIMITS[name]) == pytest.approx(expected)


SETTINGS = {
    "model": "./my model",
    "data": "./held-out.csv",
    "text": ("message",),
    "label": "outcome",
    "classes": ("upset", "happy"),
    "limit": 30,
    "explainers": ("attention",),
}
COLUMNS = "--text message --label outcome --classes upset,happy"
AUDIT = f"steadygaze audit './my model' --data ./held-out.csv --limit {{}} {COLUMNS}"
HUB = AdviceContext(trained=False, commands=AuditCommands(SETTINGS))
"""A model that steadygaze has not trained, audited by the command."""


def test_the_advice_names_texts_and_options():
    good, bad = row(SHIFT, 0.004, 0.003, 0.006), row(SHIFT, 0.030, 0.010, 0.040)
    between = row(ERASURE, 0.030, 0.000, 0.060)
    command = "Audit about 400 texts instead of 100: `steadygaze audit MODEL --data DATA {}`.".format
    assert advise([good], LIMITS, 100) == command("--limit 400")
    sampling = AdviceContext(sample=100, sampled=frozenset({SHIFT}))
    assert advise([good], LIMITS, 500, sampling) == command("--sample 400")
    assert advise([good], LIMITS, 150, sampling) == command("--limit 400 --sample 400")
    assert advise([between, bad], LIMITS, 100).startswith("Audit about 400 texts"), "a no needs only one measure"
    unlikely = advise([good, between], LIMITS, 100)
    assert "more texts are unlikely to decide it" in unlikely.lower()
    assert "0.05 and 0.02" in unlikely
    assert "0.030; for a yes, audit another explainer of this model: `steadygaze audit" in unlikely
    assert advise([row(SHIFT, 0.004, 0.003, 0.006, 7)], LIMITS, 7) == (
        "Audit more texts: a verdict needs at least 8: `steadygaze audit MODEL --data DATA --limit 8`."
    )
    assert advise([], LIMITS, 100) == ""


def test_texts_of_a_retraining_are_not_audited_texts():
    """0.72 − 0.68 is twice 0.72 − 0.7: 40 · 2² = 160."""
    shift, leak = row(REWORDED, 0.72, 0.68, 0.76, 40), Row("position-leak/shuffled", math.nan, 0, absent=ONE_CLASS)
    retrained = row("prediction-change/uniform", 0.1, 0.0, 0.2, 1500)
    context = replace(HUB, available=300, predicted=(22, 18))
    stability = of("stability", [shift, leak, retrained], context)
    assert f"audit about 160 texts instead of 40: `{AUDIT.format(160)}" in stability.advice_text.lower()


def test_advice_that_the_data_cannot_meet_is_not_given():
    good = row(SHIFT, 0.004, 0.003, 0.006)  # decides with 400 texts
    near = "Audit about 400 texts instead of 100; the data have 200: label more texts"
    assert advise([good], LIMITS, 100, AdviceContext(200)) == f"{near}, or hold out more with train --test-share."
    assert advise([good], LIMITS, 100, replace(HUB, available=200)) == f"{near}."
    few = "These data are too few to decide it: it needs about 400 texts, and the data have 100."
    assert advise([good], LIMITS, 100, AdviceContext(100)) == few
    tiny = advise([row(SHIFT, 0.004, 0.003, 0.006, 7)], LIMITS, 7, AdviceContext(7))
    assert tiny == "These data are too few: a verdict needs at least 8, and the data have 7."


def test_commands_have_the_model_the_data_and_the_columns_of_the_user():
    good = row(SHIFT, 0.004, 0.003, 0.006)
    advice = advise([good], LIMITS, 100, replace(HUB, available=1000), NO_SYNONYMS)
    table, more = advice.split("; audit about 400 texts instead of 100: ")
    assert more == f"`{AUDIT.format(400)} --explainer attention`."
    assert table.endswith(f"then pass it: `{AUDIT.format(30)} --synonyms synonyms.jsonl --explainer attention`")
    other = advise_after_no("kendall/randomized", "attention", HUB)
    assert other == f"Audit another explainer of this model: `{AUDIT.format(30)} --explainer integrated-gradients`."
    trained = advise_after_no(REWORDED, "attention", replace(HUB, trained=True))
    assert "`steadygaze train TRAINING_DATA --text message --label outcome --technique word-at --out DIR`" in trained
    corpus = AuditCommands({"model": "./m", "data": "planted-reviews"})
    assert "train planted-reviews --technique word-at" in advise_after_no(
        REWORDED, "attention", AdviceContext(commands=corpus)
    )


LONG = "--set synonyms={0} --set swaps=4 --set target_temperature=0.5 --set teacher=word-at --set teachers=2 "
STUDENT = f"--technique consensus --synonym-groups {{0}} {LONG}--set teacher_epochs=0.5 --set teacher_rate=4"


UNSTABLE = [
    name
    for item in PROPERTIES.values()
    if item.rule
    for name, of in item.rule.thresholds.items()
    if of.advice.kind == AdviceKind.STABLE_ATTENTION
]
"""The rows after whose no steadier attention helps."""


def test_rewording_vectors_and_seeds_ask_for_stable_attention():
    probes = ("reworded", "reworded-top", "noise", "fgm-label", "pgd-attention", "seeds")
    assert [f"weight-correlation/{probe}" for probe in probes] == UNSTABLE


@pytest.mark.parametrize(
    ("model", "table", "options"),
    [
        ({}, "t.jsonl", "--technique word-at --synonym-groups t.jsonl"),
        ({"encoder": "bilstm", "technique": "vanilla"}, "t.jsonl", "--technique word-at --synonym-groups t.jsonl"),
        ({"encoder": "cnn"}, "t.jsonl", "--encoder cnn --technique word-at --synonym-groups t.jsonl"),
        ({"technique": "vanilla"}, None, "--technique word-at"),
        ({"technique": "vanilla", "has_groups": True}, None, "--technique word-at"),
        ({"technique": "word-at"}, None, "--technique word-at --synonym-groups TABLE"),
        ({"technique": "consensus"}, "t.jsonl", "--technique word-at --synonym-groups t.jsonl"),
        ({"technique": "word-at", "has_groups": True}, "t.jsonl", STUDENT.format("t.jsonl")),
        ({"encoder": "transformer:x"}, None, f"--encoder transformer:x {STUDENT.format('TABLE')}"),
    ],
)
def test_unstable_attention_gets_the_training_that_the_results_recommend(model, table, options):
    commands = AuditCommands({"model": "./m", "data": "./d.csv", "synonyms": table})
    for measure in UNSTABLE:
        assert advise_after_no(measure, "attention", AdviceContext(commands=commands, **model)) == (
            f"Train a classifier with stable attention: `steadygaze train TRAINING_DATA {options} --out DIR`."
        )


def test_a_student_with_synonym_groups_is_not_advised_to_train_it_again():
    context = AdviceContext(encoder="transformer:x", technique="consensus", has_groups=True)
    assert advise_after_no(REWORDED, "attention", context).startswith("Audit another explainer of this model: ")


LEAK, GAP = "position-leak/unaccounted", "leakage-gap"


@pytest.mark.parametrize(
    ("measure", "explainer", "technique"),
    [(LEAK, "attention", "random-pretraining"), (GAP, "rationale", "fresh"), (LEAK, "rationale", "a2r")],
)
def test_a_technique_that_did_not_suffice_is_not_advised_again(measure, explainer, technique):
    first = advise_after_no(measure, explainer, AdviceContext(technique="vanilla"))
    assert f"--technique {technique}" in first
    second = advise_after_no(measure, explainer, AdviceContext(technique=technique))
    assert "steadygaze train" not in second
    assert second.startswith(f"The technique {technique} did not suffice: audit another explainer of this model: `")


def test_a_mitigation_that_did_not_suffice_or_does_not_exist_is_not_advised():
    assert "--mitigation random-pretraining" in advise_after_no(GAP, "l2x", AdviceContext(mitigation="none"))
    for explainer, mitigation in (("l2x", "random-pretraining"), ("ail", "none"), ("ail", "")):
        advice = advise_after_no(GAP, explainer, AdviceContext(mitigation=mitigation))
        assert advice.startswith("Audit another explainer of this model: "), explainer


@pytest.mark.parametrize(("measure", "explainer"), [(LEAK, "attention"), (GAP, "l2x")])
def test_advice_of_random_pretraining_states_the_number_of_texts_of_the_results(measure, explainer):
    assert "which may not help with fewer than about 4,000 training texts: `" in advise_after_no(measure, explainer)
    results = (Path(__file__).parents[2] / "docs/results/shortcuts.md").read_text(encoding="utf-8")
    assert "Random pretraining worked with 4,010 training texts or more" in results


@pytest.mark.parametrize("page", ["results/synonym-groups", "results/stability", "how-to/train-stable-classifier"])
def test_the_pages_recommend_word_at_with_groups_before_the_long_student(page):
    """As the advice does; a new recommendation must change both."""
    text = (Path(__file__).parents[2] / "docs" / f"{page}.md").read_text(encoding="utf-8")
    start = text.find("**Recommendation.**") if "results" in page else text.find("1. With a table")
    paragraph = text[start:].partition("\n\n")[0]
    assert 0 < paragraph.find("`word-at`") < paragraph.find("long student")
    assert "transformer" in paragraph


def test_options_of_training_are_advised_only_for_models_of_train():
    rows = [*UNREACHED, GOOD_RANDOMIZED]
    ours, theirs = (of("faithfulness", rows, context).advice_text for context in (AdviceContext(), HUB))
    assert "--balanced or with --vectors" in ours
    evaluate = (
        "`steadygaze evaluate './my model' --data ./held-out.csv --text message --label outcome --classes upset,happy`"
    )
    assert theirs == (
        f"Compare the model with the most frequent label: {evaluate}; if it is not better, check the order of "
        "--classes and the language of the texts."
    )
    for name in {name for item in PROPERTIES.values() if item.rule for name in item.rule.thresholds}:
        assert "steadygaze train" not in advise_after_no(name, "attention", HUB)


@pytest.mark.parametrize(
    ("predicted", "available", "expected"),
    [
        ((), None, "Audit more texts: at least 20 texts of each of two predicted classes."),
        ((90, 10), 1000, "Audit about 370 texts, for at least 20 texts of each of two predicted classes: `steadygaze"),
        (
            (90, 10),
            150,
            "These data are too few to decide it: it needs at least 20 texts of each of two predicted classes",
        ),
        ((30, 0), 80, "These data are too few to decide it"),
        ((12, 0), 300, "These data are too few to decide it"),
        ((100, 0, 0), 10_000, "Audit at least 2,000 texts, for"),  # 20 * 100, as if one text had another class
        ((80, 10, 10), 150, "These data are too few to decide it"),
    ],
)
def test_more_texts_of_a_class_are_advised_only_if_the_data_can_have_them(predicted, available, expected):
    assert advise([], LIMITS, 100, AdviceContext(available, predicted), ONE_CLASS).startswith(expected)


def test_the_texts_of_a_class_are_those_that_the_measure_counts():
    """60 texts, 40 and 20 by their predictions, but 44 and 16 once their words are shuffled: 20 · 60 / 16 = 75."""
    context = AdviceContext(500, (40, 20), (44, 16), commands=AuditCommands({**SETTINGS, "limit": 60}))
    limit = int(re.search(r"--limit (\d+)", advise([], LIMITS, 60, context, ONE_CLASS))[1])
    assert limit == 120, "the lower end of the interval of 16 / 60 is 0.171"
    assert "--limit 80 " in advise([], LIMITS, 60, replace(context, available=80), ONE_CLASS), "all texts there are"
    assert advise([], LIMITS, 60, replace(context, available=70), ONE_CLASS).startswith("These data are too few")


def rerun(advice: str) -> list[str]:
    """The advised audits."""
    return list(re.findall("`(steadygaze audit [^`]+)`", advice))


def number_of(command: str, option: str, default: int) -> int:
    match = re.search(rf"--{option} (\d+)", command)
    return int(match[1]) if match else default


@pytest.mark.slow
def test_more_texts_of_a_class_as_advised_are_almost_always_enough():
    """200 audits of models whose second class has 5 to 40 % of the shuffled texts."""
    generator, enough = np.random.default_rng(0), []
    while len(enough) < 200:
        share, audited = generator.uniform(0.05, 0.4), int(generator.integers(20, 150))
        second = int(generator.binomial(audited, share))
        if not 0 < second < 20:
            continue
        commands = AuditCommands({**SETTINGS, "limit": audited})
        context = AdviceContext(100_000, (audited, 0), (audited - second, second), commands=commands)
        (command,) = rerun(advise([], LIMITS, audited, context, ONE_CLASS))
        limit = number_of(command, "limit", 0)
        assert limit > audited
        enough.append(generator.binomial(limit, share) >= 20)
    assert np.mean(enough) >= 0.9


@given(
    measure=st.sampled_from(list(LIMITS)),
    value=st.floats(0.0001, 0.2),
    width=st.floats(0.0001, 0.1),
    audited=st.integers(8, 2_000),
    sample=st.integers(4, 500),
    share=st.floats(0.05, 1),
    more=st.floats(1, 100),
    sampled=st.booleans(),
)
def test_an_advised_audit_is_never_the_one_that_was_run_and_reads_enough_texts(
    measure, value, width, audited, sample, share, more, sampled
):
    settings = {**SETTINGS, "limit": audited, "sample": sample, "explainers": ()}
    commands = AuditCommands(settings)
    context = AdviceContext(
        int(audited * more), (audited, 0), (), sample, frozenset({measure} if sampled else ()), commands=commands
    )
    read = context.read(measure, audited)
    n = max(1, int(read * share))
    undecided = row(measure, value, value - width, value + width, n)
    good, bad = LIMITS[measure]
    low, high = undecided.interval
    inside = (low >= good, high <= bad) if good > bad else (high <= good, low >= bad)
    if any(n >= least and part for least, part in zip((FEWEST_FOR_YES, FEWEST), inside, strict=True)):
        return  # decided
    advice = advise([undecided], LIMITS, audited, context)
    assert advice
    ran = f"`{' '.join(shlex.quote(word) for word in rerun_command(settings))}`"
    assert ran not in advice
    needed = max(8, deciding_texts(undecided, good, bad)) if n >= 8 else 8
    for command in rerun(advice):
        if "--explainer" in command:
            continue  # the next step is another explainer, not more texts
        limit, new_sample = number_of(command, "limit", audited), number_of(command, "sample", sample)
        reads = min(limit, new_sample) if sampled else limit
        assert reads > read
        assert reads >= min(needed * read / n, context.available) - 1e-6
        assert limit <= context.available


def test_an_explainer_that_was_audited_is_not_advised():
    def advised(*explainers):
        settings = {**SETTINGS, "explainers": explainers}
        return advise_after_no(ERASURE, explainers[0], replace(HUB, commands=AuditCommands(settings)))

    assert "--explainer leave-one-out`" in advised("attention", "integrated-gradients")
    assert "--explainer kernel-shap`" in advised("leave-one-out", "lime")
    assert "Compare the explainers of this audit" in advised("leave-one-out", "lime", "kernel-shap")


@pytest.mark.parametrize(
    ("reason", "advice"),
    [(NO_SYNONYMS, "Build a synonym table, here of English words: `steadygaze"), (ONE_CLASS, "Audit")],
)
def test_the_reasons_of_the_protocols_have_an_advice(reason, advice):
    assert advise([], LIMITS, 100, missing=reason).startswith(advice)


def test_a_missing_synonym_table_is_named_on_page_and_terminal():
    """Without it nothing is reworded, and stability is not measured, whatever the other scores are."""
    missing = [
        Row(f"weight-correlation/{condition}", math.nan, 0, absent=NO_SYNONYMS)
        for condition in ("reworded", "reworded-top")
    ]
    rows = [row("weight-correlation/noise", 0.9, 0.8, 1.0), row(SHIFT, 0.001, 0.0, 0.002), *missing]
    stability = of("stability", rows)
    assert stability.answer == "not measured"
    assert [item.kind for item in stability.advice] == [AdviceKind.BUILD_SYNONYM_TABLE, AdviceKind.PASS_SYNONYM_TABLE]
    report = Report("Explanation audit", tuple(rows), (stability,))
    for shown in (text(report), render(report)):
        assert "there is no synonym table: pass a synonym table as synonyms=" in shown.lower()


def test_the_commands_that_build_and_pass_a_synonym_table_are_code_on_the_page():
    advice = verdict_rules.advise([], LIMITS, 100, missing=NO_SYNONYMS)
    assert [item.kind for item in advice] == [AdviceKind.BUILD_SYNONYM_TABLE, AdviceKind.PASS_SYNONYM_TABLE]
    verdict = Verdict("Mine", "undecided", (NO_SYNONYMS,), (), "mine", {}, advice)
    report = Report("Explanation audit", (), (verdict,))
    assert f"Advice: b{verdict.advice_text[1:]}" in text(report)
    page = render(report)
    assert "<strong>Advice:</strong> Build a synonym table" in page
    command = (
        '<code class="inline">steadygaze synonyms build wordnet <span class="option">--out synonyms.jsonl</span></code>'
    )
    assert page.count(command) == 2
    assert Report.from_dict(report.to_dict()).verdicts[0].advice_text == verdict.advice_text


def test_a_yes_has_no_advice_and_a_no_has_one_with_a_command():
    good, bad = (of("stability", [row(REWORDED, value, value, value)]) for value in (0.9, 0.3))
    assert (good.answer, good.advice_text) == ("yes", "")
    assert bad.answer == "no"
    assert bad.advice_text.startswith(
        "Train a classifier with stable attention: `steadygaze train TRAINING_DATA --technique word-at --synonym-groups"
    )


# --- fewer texts than a yes needs


@pytest.mark.parametrize(("n", "answer"), [(8, "undecided"), (49, "undecided"), (50, "yes")])
def test_a_good_score_of_too_few_texts_is_advised_to_read_fifty(n, answer):
    verdict = of("stability", [row(REWORDED, 0.9, 0.85, 0.95, n)], replace(HUB, available=300, predicted=(n, 0)))
    assert verdict.answer == answer
    assert [(item.kind, item.numbers["texts"], item.numbers["read"]) for item in verdict.advice] == (
        [(AdviceKind.MORE_TEXTS, 50, n)] if answer == "undecided" else []
    )
    assert [number_of(command, "limit", 0) for command in rerun(verdict.advice_text)] == [50] * len(verdict.advice)


def test_a_good_score_of_49_texts_of_data_with_49_needs_more_texts():
    """Fifty are less than three times as many: labeling more is within reach."""
    verdict = of("stability", [row(REWORDED, 0.9, 0.85, 0.95, 49)], replace(HUB, available=49, predicted=(49, 0)))
    assert [(item.kind, item.numbers["texts"]) for item in verdict.advice] == [(AdviceKind.LABEL_MORE_TEXTS, 50)]


def test_a_score_that_fewer_than_fifty_texts_would_decide_is_advised_to_read_fifty_for_a_yes_only():
    """Twice as far inside as its interval reaches: a quarter of the texts.  A no needs eight, and is one here."""
    assert deciding_texts(row(REWORDED, 0.9, 0.8, 1.0, 20), 0.7, 0.65) == 50
    assert deciding_texts(row(REWORDED, 0.45, 0.3, 0.6, 20), 0.7, 0.65) == pytest.approx(20 * (0.15 / 0.2) ** 2)


def test_a_no_among_several_tests_needs_more_texts_than_it_has():
    """0.60 ± 0.095 among four tests: n (1.274 · 0.095 / 0.1)² = 1.47 n texts make it a no."""
    rule = PROPERTIES["faithfulness"].rule
    rows = {name: row(name, bound.good, bound.good, bound.good) for name, bound in rule.thresholds.items()}
    rows["kendall/randomized"] = row("kendall/randomized", 0.6, 0.505, 0.695)
    verdict = of("faithfulness", list(rows.values()), replace(HUB, available=1000, predicted=(50, 50)))
    assert verdict.answer == "undecided"
    (advice,) = verdict.advice
    assert (advice.kind, advice.numbers["texts"], advice.numbers["read"]) == (AdviceKind.MORE_TEXTS, 150, 100)


NO = [
    pytest.param(name, explainer, id=f"{name} of {explainer}")
    for name in {name: None for item in PROPERTIES.values() if item.rule for name in item.rule.thresholds}
    for explainer in ("attention", "rationale", "integrated-gradients", "l2x")
]


@pytest.mark.parametrize(("name", "explainer"), NO)
def test_every_no_has_one_line_of_advice_with_a_command_of_this_program(name, explainer):
    sentence = advise_after_no(name, explainer)
    assert "\n" not in sentence
    _, command, option = re.fullmatch(
        r"(.*): `steadygaze (\S+) .*--(?:explainer|technique) ([a-z0-9-]+).*`\.", sentence
    ).groups()
    assert command in COMMANDS
    assert option in (*EXPLAINERS, *TECHNIQUES, *METHODS)
    assert option != explainer or command == "fit-explainer"


def test_of_commands_that_differ_in_the_number_of_texts_the_one_with_most_is_listed():
    commands = [f"steadygaze audit m --limit {n}" for n in (50, 400, 55)]
    commands[1:1] = "steadygaze audit m", "steadygaze audit m --limit 9 --k 5", "steadygaze train m --out DIR"
    advice = tuple(Advice(command=tuple(command.split())) for command in commands)
    report = Report("x", (), (Verdict("x", "no", (), (), "x", {}, advice),))
    assert complete_commands(report, {"model": "m", "data": "d"}) == [
        "steadygaze audit m --limit 400",
        "steadygaze audit m",
        "steadygaze audit m --limit 9 --k 5",
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The black box predicts the same label")
@pytest.mark.usefixtures("fewer_protocols")
def test_the_advice_of_an_audit_knows_how_the_model_was_trained(monkeypatch):
    seen = []
    monkeypatch.setattr(audit_report, "verdicts", lambda rows, main, context: seen.append(context) or ())
    groups = {"good": ["great"], "bad": ["poor"]}
    model = tiny("average", synonym_groups=groups).fit(TEXTS, LABELS)
    sg.audit(model, TEXTS[:4], LABELS[:4], sample=1)
    sg.audit(lambda texts: [[0.4, 0.6] for _ in texts], TEXTS[:4], LABELS[:4], classes=["neg", "pos"], sample=1)
    settings = {"epochs": 1, "pretraining_epochs": 1}
    fitted = sg.fit_explainer(model, TEXTS, k=1, mitigation="random-pretraining", settings=settings)
    sg.audit(model, TEXTS[:4], LABELS[:4], explainers=[fitted], sample=1)
    assert [(c.trained, c.encoder, c.technique, c.has_groups, c.mitigation) for c in seen] == [
        (True, "average", "vanilla", True, ""),
        (False, "", "", False, ""),
        (True, "average", "vanilla", True, "random-pretraining"),
    ]


def test_a_model_that_has_not_learned_is_trained_before_anything_else():
    doubtful = row("default-mass/above-share", 0.2, 0.1, 0.3)
    rows = [row("collapsed", 1.0, 1.0, 1.0), row(REWORDED, 0.3, 0.3, 0.3), doubtful, GOOD_RANDOMIZED]
    unlearned = AdviceContext(has_learned=False, commands=AuditCommands(SETTINGS))
    advice = {
        verdict.advice_text
        for verdict in verdicts(rows, "attention", unlearned)
        if verdict.answer in ("no", "undecided")
    }
    assert len(advice) == 1
    assert advice.pop().startswith("First train a model that predicts better than a guess: ")
    hub = of("stability", rows, replace(HUB, has_learned=False)).advice_text
    assert hub.startswith("Compare the model with the most frequent label: `steadygaze evaluate './my model' ")


def test_a_model_of_pairs_is_not_taken_for_a_constant_one():
    """Words of the first text alone are erased; the prediction may depend on the second."""
    verdict = of("faithfulness", [*UNREACHED, GOOD_RANDOMIZED], AdviceContext(has_pairs=True))
    assert verdict.answer == "undecided"
    assert verdict.advice_text.startswith("Compare the model with the most frequent label: `steadygaze evaluate MODEL")
    assert "for more epochs" not in verdict.advice_text
