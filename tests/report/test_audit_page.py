"""The page of an audit: its content and order, and that text is escaped."""

import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest

from report.audited import (
    ALONE,
    FAITHFULNESS_TITLE,
    PLAUSIBILITY_TITLE,
    ROWS,
    SEEDS,
    SHIFTS,
    SHORTCUT,
    STABILITY_TITLE,
    VERDICTS,
    explanation,
    full_report,
    row,
)
from report.browser import Outline, plain_text
from report.hostile import IMAGE, SCRIPT, hostile
from steadygaze.properties import PROPERTIES
from steadygaze.report.audit_page import OTHER, _section
from steadygaze.report.page import deciding_sentence
from steadygaze.results.advice import Advice, AdviceKind
from steadygaze.results.explanation import Explanations
from steadygaze.results.formatting import condition_name
from steadygaze.results.health import Health, HealthProblem, ProblemKind, constant_prediction
from steadygaze.results.model_card import add_audit_to_card
from steadygaze.results.note import NoteCode, note, text_note
from steadygaze.results.policy import as_policy
from steadygaze.results.report import Report
from steadygaze.results.row import Fact, Row, Shift, Verdict


@pytest.fixture(scope="module")
def html() -> str:
    return full_report().to_html()


@pytest.fixture(scope="module")
def text(html: str) -> str:
    return plain_text(html)


@pytest.fixture(scope="module")
def kinds() -> set[str]:
    """The elements of a page whose words are all harmless."""
    return {tag for tag, _ in Outline(hostile("").to_html()).tags}


def test_every_element_is_closed_where_it_was_opened_and_headings_do_not_skip_a_level(html):
    outline = Outline(html)
    assert outline.open == []
    levels = [int(tag[1]) for tag, _ in outline.tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_parts_come_in_their_order(html):
    parts = re.findall(r'<h2 id="(\w+)">([^<]+)</h2>', html)
    assert parts == [
        ("facts", "What was audited"),
        ("notes", "Notes"),
        ("verdicts", "The verdicts"),
        ("rationales", "Human rationales and explanations"),
        ("predictions", "Predictions"),
        ("texts", "Texts before and after"),
        ("pictures", "Pictures"),
        ("numbers", "All numbers"),
        ("absent", "Checks that do not apply"),
        ("made", "How it was made, and how to check it"),
        ("glossary", "Glossary"),
    ]
    anchors = re.findall(r'href="#([\w-]+)"', html)
    assert {"verdicts", "made"} <= set(anchors) <= set(re.findall(r'id="([\w-]+)"', html))


def test_parts_that_have_nothing_to_show_are_left_out():
    tags = [tag for tag, _ in Outline(Report("Only a title", ()).to_html()).tags]
    assert not {"table", "svg", "article", "figure", "details"} & set(tags)
    assert tags.count("section") == 1  # how it was made


ANSWERS = [("~", "undecided"), ("✓", "yes"), ("–", "not measured"), ("✗", "no"), ("–", "not measured")]


def test_the_answers_come_first_each_with_its_section_and_what_it_means(html):
    first = html[html.index("<body>") : html.index("<main>")]
    assert re.findall(r'aria-hidden="true">(.)</span> (yes|undecided|no|not measured)</span>', first) == ANSWERS
    message = plain_text(first)
    assert "Explanation: attention · Model: reviews-model, a steadygaze classifier · 400 texts" in message
    doubtful = condition_name("reworded-top")
    assert (
        f"~ undecided Is it stable under rewording? Synonyms may shift the attention to other words ({doubtful})."
        in message
    )
    assert "✓ yes Do the words matter? The model uses the highlighted words: without them the prediction" in message
    assert "– not measured Do people agree? Nobody marked words in these texts." in message
    assert "· 1 text" in plain_text(full_report(plots={}, facts={**full_report().facts, "texts": "1 text"}).to_html())


def test_a_link_leads_back_to_the_top(html):
    assert (html.count('href="#top"'), html.count('id="top"')) == (1, 1)


def test_every_answer_leads_to_its_card(html):
    links = re.findall(r'<a href="#(verdict-\d)">([^<]+)</a>', html)
    cards = re.findall(r'<article class="card [^"]*" id="([^"]+)">\n<header>\n<h3>([^<]+) <span', html)
    assert [place for place, _ in links] == [place for place, _ in cards]
    assert [question for _, question in links] == [PROPERTIES[verdict.key].short_question for verdict in VERDICTS]
    assert [question for _, question in cards] == [PROPERTIES[verdict.key].question for verdict in VERDICTS]
    cards = html[html.index('id="verdicts"') :]
    assert all(f'href="#term-{verdict.key}">{verdict.title}</a></span></h3>' in cards for verdict in VERDICTS)


def test_a_card_has_the_section_the_answer_in_words_with_a_sign_why_and_the_deciding_numbers(html, text):
    cards = html[html.index('id="verdicts"') :]
    assert re.findall(r'aria-hidden="true">(.)</span> (yes|undecided|no|not measured)</span>', cards) == ANSWERS
    assert (
        "Agreement of the weights when highlighted words are substituted by synonyms 0.681 0.657 to 0.705 "
        "(0: as shuffled weights, 1: the same weights) … −0.2 yes from 0.7 up no up to 0.65 1 "
        "weight-correlation/reworded-top Correlation of the weights of the words before and after a change, or of two "
        "models. As many words, those with the most prominent weights, substituted by synonyms. Range −1 to 1; "
        "↑ higher is better."
    ) in text
    assert 'aria-label="0.681 (0.657 to 0.705) on an axis from −0.2 to 1: yes from 0.7 up, no up to 0.65."' in html
    assert "… −0.1 yes from 0.05 up no up to 0.02 0.5 … comprehensiveness/above-random Drop of the predicted " in text


def test_properties_measures_and_perturbations_link_to_their_sentence_at_the_end_of_the_page(html, text):
    glossary = text[text.rindex("Glossary") :]
    for sentence in (
        "Stability under rewording Does the explanation stay the same if words are replaced by synonyms?",
        "comprehensiveness Drop of the predicted ",
        "jensen-shannon Shift of the explanation: Jensen–Shannon divergence in nats (Lin 1991). Range 0 to 0.693",
        "3-synonyms Three words substituted by synonyms.",
    ):
        assert sentence in glossary, sentence
    assert "auprc" not in glossary  # it has no value
    links = re.findall(r'<a class="term" href="#(term-[\w-]+)">(.+?)</a>', html)
    assert ("term-weight-correlation", "weight-correlation/<wbr>reworded-top") in links
    assert ("term-jensen-shannon", "jensen-shannon/<wbr>3-synonyms") in links
    assert ("term-jensen-shannon", "Jensen-Shannon divergence") in links
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert {anchor for anchor, _ in links} <= set(ids)


def test_a_model_with_one_predicted_class_is_named_before_everything_else():
    health = constant_prediction([1] * 30, [0, 1] * 15, ["negative", "positive"])
    text = plain_text(full_report(health=health, plots={}).to_html())
    assert "⚠ The model predicts the label 'positive' for every" in text.partition(full_report().title)[0]
    assert text.count("for every audited text") == 1
    assert "for every audited text" not in plain_text(full_report(plots={}).to_html())


def test_all_texts_with_human_rationales_are_on_the_page_five_of_them_open():
    example = explanation("It is superb.", {"superb": 0.7}, "positive", 0.8)
    texts = Explanations(replace(example, rationales=((6, 12),)) for _ in range(26))
    number = row("token-f1", 0.61, 0.02, notes=(note(NoteCode.CHANCE_LEVEL, value=0.25),))
    page = full_report(explanations=texts, plots={}, shifts=(), evaluation=None, rows=(number,)).to_html()
    assert page.count("<h4>Human rationale</h4>") == 26
    before, folded = page.split("<summary>Show all: 21 more</summary>")
    assert before.count("<h4>Human rationale</h4>") == 5
    assert folded.partition("</details>")[0].count("<h4>Human rationale</h4>") == 21
    sentence = (
        "26 of the 26 explained texts have a human rationale. token-f1 of the explanation: 0.610 (0.590 to 0.630)"
    )
    assert f"{sentence}; chance level 0.250, for a random choice or order of words." in plain_text(page)


def test_a_number_without_an_axis_has_its_bounds_in_words():
    collapsed = row("collapsed", 0.0)
    silent = Verdict("Silent?", "yes", (text_note("no"),), (collapsed.signature,), thresholds={"collapsed": (0.0, 1.0)})
    page = full_report(rows=(collapsed,), verdicts=(silent,), plots={}).to_html()
    assert "Counts as yes up to 0, no from 1 up." in plain_text(page)
    assert 'class="axis' not in page


def test_a_measure_without_facts_has_no_words():
    free = {"ratio": Fact("How many times.", 0, math.inf, "lower")}
    sentence = deciding_sentence(full_report(measures=free), row("ratio", 2.0))
    assert sentence == "How many times. Range 0 or more; ↓\N{NO-BREAK SPACE}lower is better."
    assert deciding_sentence(full_report(measures={}), ROWS[0]) == ""


def test_a_collapse_comes_before_any_verdict():
    assert "collapsed attention" not in full_report(plots={}).to_html()
    problem = HealthProblem(ProblemKind.COLLAPSED, detail="The weights are nearly the same for every word.")
    report = full_report(plots={}, health=Health((problem,)))
    text = Outline(report.to_html()).text.replace(f"{STABILITY_TITLE} is undecided.", "")
    assert "The weights are nearly the same for every word." in text
    assert text.index("collapsed attention") < text.index(STABILITY_TITLE)


def test_the_worst_text_comes_first_and_of_many_the_rest_are_folded(html):
    assert re.findall(r"shift of ([\d.]+)</h4>", html) == ["0.213", "0.093", "0.041", "0.014"]
    assert re.findall(r'<h3 class="probe">([^ <]+)', html) == ["3-synonyms", "noise"]
    folded = html[html.index("<summary>1 more</summary>") :]
    assert "shift of 0.041<" in folded
    assert "shift of 0.093<" not in folded
    turned = full_report(plots={}, shifts=SHIFTS[::-1]).to_html()
    assert re.findall(r"shift of ([\d.]+)</h4>", turned) == ["0.213", "0.093", "0.041", "0.014"]
    shaken = Shift("noise", 0.3, SHIFTS[1].before, SHIFTS[1].before)
    turned = full_report(plots={}, shifts=(*SHIFTS, shaken)).to_html()
    assert re.findall(r"shift of ([\d.]+)</h4>", turned) == ["0.300", "0.014", "0.213", "0.093", "0.041"]


def test_substituted_words_are_underlined_and_a_changed_label_is_named_in_words(html, text):
    underlined = re.findall(r'style="text-decoration:underline[^"]*">(\w+)</span>', html)
    assert {"superb", "great", "witty", "funny", "worth", "merits"} <= set(underlined)
    assert "gorgeous" not in underlined
    assert html.count("✗ the label changed: positive → negative") == 1
    assert "label positive, as before" in text
    assert "underlined : the substituted words" in text
    assert ": the human rationale" not in text[text.rindex("Texts before and after") :]


def test_numbers_are_grouped_by_section_and_explainer_with_the_audited_one_open(html):
    numbers = html[html.index('id="numbers"') : html.index('id="absent"')]
    assert re.findall(r"<h3>([^<]+)</h3>|<details( open)?>\n<summary>([^<]+) <", numbers) == [
        ("Correctness", "", ""), ("", " open", "the prediction"),
        (STABILITY_TITLE, "", ""), ("", " open", "attention"), ("", "", "gradient"),
        (FAITHFULNESS_TITLE, "", ""), ("", " open", "attention"), ("", "", "random"), ("", "", "gradient"),
        (SHORTCUT, "", ""), ("", " open", "attention"),
    ]  # fmt: skip


def test_every_number_has_its_interval_n_range_direction_and_signature(text):
    assert (
        "sufficiency 0.040 0.020 to 0.060 400 Drop of the predicted probability when only the top-weighted words are "
        "left (DeYoung et al. 2020). Range −1 to 1; ↓ lower is better. "
        "sufficiency|corpus:planted-reviews|data:3f6c1a9be0d2|"
        "erase:delete|explainer:attention|model:a41c77e05b19|seed:0|sizes:1,5,10,20,50%|split:test|v:0.1.0|n:400"
    ) in text
    assert all(row.signature in text for row in ROWS if not math.isnan(row.value))


def test_measures_that_do_not_apply_are_listed_together_with_the_reason(html, text):
    assert f"Not applicable, because {ALONE} jensen-shannon/seeds (attention) top-k-overlap/seeds (attention)" in text
    assert "because nobody marked words in these texts auprc (attention)" in text
    numbers = html[html.index('id="numbers"') : html.index('id="absent"')]
    assert PLAUSIBILITY_TITLE not in numbers


def test_a_report_without_headings_files_its_numbers_under_the_verdicts():
    text = Outline(full_report(plots={}, sections={}).to_html()).text.rpartition("Glossary")[0]
    assert text.rindex("Other numbers") > text.rindex(SHORTCUT)
    assert text.count(STABILITY_TITLE) == 3  # the summary, a card, a heading


def test_a_measure_without_a_heading_is_filed_with_its_probe_or_its_family():
    filed = {
        "jensen-shannon/noise": STABILITY_TITLE,
        "jensen-shannon/seeds": SEEDS,
        "auprc/above-random": PLAUSIBILITY_TITLE,
    }
    filed |= {"comprehensiveness/above-random": FAITHFULNESS_TITLE}
    expected = {
        "kendall/noise": STABILITY_TITLE,
        "label-flip/seeds": SEEDS,
        "auprc": PLAUSIBILITY_TITLE,
        "comprehensiveness": FAITHFULNESS_TITLE,
        "flip-radius/above-random": OTHER,
        "jensen-shannon/new": OTHER,
        "accuracy": OTHER,
    }
    assert {name: _section(name, filed) for name in expected} == expected


def test_the_command_can_be_copied_and_the_verification_is_named(text):
    assert "steadygaze audit model/ --data planted-reviews --bundle 'my bundle/'" in text
    assert "steadygaze audit --verify FOLDER" in text
    assert "torch 2.13.0" in text
    assert "made in Python, by steadygaze.audit(…)" in Outline(full_report(plots={}, command=()).to_html()).text


def test_every_table_header_has_a_scope_and_every_picture_words(html):
    tags = Outline(html).tags
    assert all(attributes.get("scope") in {"col", "row", "rowgroup"} for tag, attributes in tags if tag == "th")
    pictures = [attributes for _, attributes in tags if attributes.get("role") == "img"]
    assert len(pictures) == 5 + html.count('class="axis')
    assert all(len(attributes["aria-label"]) > 40 for attributes in pictures)
    assert html.count("<svg") == 5


def test_a_page_is_small(html):
    assert len(html.encode()) < 400_000


@pytest.mark.slow
def test_a_page_of_long_texts_and_many_points_stays_under_two_megabytes():
    words = " ".join(f"word{i}" for i in range(3000))
    e = explanation(words, {"word7": 0.5}, "positive", 0.9)
    shifts = tuple(Shift(f"probe {i % 8}", 0.1, e, e) for i in range(40))
    points = {
        "moves": [{"probe": f"probe {i % 8}", "distance": i % 97 / 97} for i in range(20_000)],
        "seeds": [{"max": i % 89 / 89, "distance": i % 97 / 97} for i in range(20_000)],
        "gradient": [{"attention": i % 89 / 89, "gradient": i % 97 / 97} for i in range(20_000)],
    }
    assert len(full_report(shifts=shifts, plots=points).to_html().encode()) < 2_000_000


def test_markup_in_any_word_is_text(kinds):
    page = hostile(SCRIPT + IMAGE).to_html()
    assert "<script" not in page
    assert "<img" not in page
    outline = Outline(page)
    assert {tag for tag, _ in outline.tags} == kinds
    assert outline.text.count(SCRIPT) >= 30


@pytest.mark.parametrize(
    "quote", ['" onload="x', "' onload='x", "</style><b>", "</text></svg><b>", "{{ 7 * 7 }}", "\ud800"]
)
def test_nothing_breaks_out_of_an_attribute_or_a_drawing(quote, kinds):
    page = hostile(quote).to_html()
    page.encode()
    outline = Outline(page)
    assert not any("onload" in attributes for _, attributes in outline.tags)
    assert {tag for tag, _ in outline.tags} == kinds
    assert outline.open == []


def test_the_page_forbids_itself_to_load_or_run_anything(html):
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in html
    assert re.search(r"""(src|srcset)\s*=|href="[^#]|url\(|@import|https?:|<script| on\w+=""", html) is None


@pytest.mark.slow
def test_the_page_is_made_again_from_the_json_where_there_is_no_torch(tmp_path: Path, html):
    """A subprocess in which torch, and everything that comes with it, cannot be imported."""
    full_report().to_json(tmp_path / "report.json")
    program = (
        "import sys\n"
        "for name in ('torch', 'transformers', 'accelerate', 'tokenizers', 'sklearn'): sys.modules[name] = None\n"
        "from steadygaze import Report\n"
        "from steadygaze.results.policy import as_policy\n"
        "import steadygaze.bundle.bundle\n"
        "report = Report.from_json('report.json')\n"
        "report.to_html('report.html')\n"
        "print(len(report.failing(['accuracy>=0.99'])))\n"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout == "1\n"
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == html


def test_the_json_and_the_page_have_the_same_numbers(html):
    page_text = Outline(html).text
    for entry in json.loads(full_report().to_json())["rows"]:
        assert entry["value"] is None or entry["signature"] in page_text


def test_the_page_names_the_folder_of_its_command_and_what_a_verification_needs():
    facts, command = (
        {**full_report().facts, "data": "f92543b03126"},
        ("steadygaze", "audit", "./m", "--data", "./d.csv"),
    )
    page = " ".join(plain_text(full_report(command=command, facts=facts).to_html()).split())
    assert "Run it in the folder where the audit ran, or, for a bundle, in the folder that contains the bundle" in page
    assert "The SHA-256 of the audited texts and labels starts with f92543b03126" in page
    assert "add --bundle FOLDER to its command" in page


def test_the_page_begins_with_a_summary_in_words(html):
    first = plain_text(html[html.index("<body>") : html.index("<main>")])
    assert (
        "This audit tested the attention of the model reviews-model on 400 texts. The answer is yes for faithfulness. "
        "The answer is no for “no shortcut leakage”. Stability under rewording is undecided. "
        "Not measured: seed consistency and plausibility. "
        "The model predicts the right label for 91.3 % of the texts (95 % interval 88.5 to 94.1 %). "
        "The most frequent label, negative, has 50.0 % of the texts; "
        "of the texts with label negative, the model finds 90.0 %. "
        "Do not rely on these explanations for a property whose answer is no."
    ) in first
    assert 'class="paragraph"' not in full_report(plots={}, verdicts=()).to_html()


def test_the_summary_quotes_the_model_and_keeps_numbers_with_their_percent_sign(html):
    assert 'of the model <code class="inline">reviews-model</code> on 400 texts.' in html
    first = html[html.index("<body>") : html.index("<main>")]
    assert "91.3\N{NO-BREAK SPACE}% of the texts (95\N{NO-BREAK SPACE}% interval" in first
    assert not re.search(r"\d %", first)


def test_the_summary_names_generated_rationales(html):
    sentence = "planted-reviews is a generated corpus: where this page says human rationales, they are generated."
    rows = (*full_report().rows, row("average-precision/above-random", 0.3, 0.1))
    assert sentence not in plain_text(html), "no rationales were measured"
    assert sentence in plain_text(full_report(plots={}, rows=rows).to_html())
    other = {**full_report().facts, "corpus": "reviews.csv"}
    assert "generated" not in plain_text(full_report(plots={}, rows=rows, facts=other).to_html())


def test_shares_are_rounded_by_one_rule():
    """69 of 80 is 0.8625: 0.863 and 86.3 %, not 86.2 %."""
    page = plain_text(full_report(plots={}, rows=(row("accuracy", 69 / 80, None, None),)).to_html())
    assert "the right label for 86.3 % of the texts." in page
    assert "Accuracy 0.863 " in page


def test_the_scores_that_are_not_good_are_named_beside_the_answer():
    def answer(*rows: Row) -> str:
        limits = PROPERTIES["robustness"].rule.limits
        names = tuple(item.signature for item in rows)
        verdict = Verdict("Robustness", "undecided", (text_note("why"),), names, "robustness", limits)
        report = full_report(plots={}, rows=rows, verdicts=(verdict,))
        return plain_text(report.to_html()).partition("Robust to worst-case vectors?")[2].partition("Date")[0]

    good, between = (row("weight-correlation/noise", value, 0.01) for value in (0.9, 0.68))
    fgm = row("weight-correlation/fgm-label", 0.68, 0.01)
    assert "may shift the attention to other words (noise)." in answer(between)
    assert "may shift the attention to other words (FGM)." in answer(good, fgm)
    assert "may shift the attention to other words." in answer(good)


def test_a_score_that_cannot_be_a_no_has_its_one_threshold_in_words():
    score = row("label-unaccounted", 0.05, 0.01)
    verdict = Verdict(
        "Leak?", "yes", (text_note("no"),), (score.signature,), thresholds={score.measure: (0.08, math.inf)}
    )
    facts = {score.measure: Fact("Share.", 0, 1, "lower")}
    report = full_report(rows=(score,), verdicts=(verdict,), measures=facts, plots={})
    page = report.to_html()
    assert "Counts as yes up to 0.08, never no." in plain_text(page)
    assert 'class="axis' not in page
    assert Report.from_dict(json.loads(json.dumps(report.to_dict()))) == report


@pytest.mark.parametrize(
    ("limits", "place"),
    [
        ((0.7, 0.65), "lies between the thresholds of yes and no, 0.7 and 0.65, or close to one of them: "),
        ((0.08, math.inf), "lies beyond the threshold of yes, 0.08, or close to it: "),
        ((0.08, None), "lies beyond the threshold of yes, 0.08, or close to it: "),
    ],
)
def test_the_place_of_a_score_that_no_number_of_texts_decides(limits, place):
    numbers = {"label": "Score", "value": 0.1, "good": limits[0], "bad": limits[1]}
    text = Verdict("T", "undecided", (), advice=(Advice(AdviceKind.NOT_MORE_TEXTS, numbers=numbers),)).advice_text
    assert place in text
    assert text.endswith(": score, 0.100.")


def test_an_answer_that_is_not_meaningful_has_its_sign_and_its_own_look_everywhere():
    """On the page, in the terminal, and on the card; neither as a no nor as one that was not measured."""
    reasons = (note(NoteCode.DEPENDS_ON, title="Faithfulness", answer="no"), *VERDICTS[0].reasons)
    refuted = (replace(VERDICTS[0], answer="not meaningful", reasons=reasons), replace(VERDICTS[1], answer="no"))
    report = full_report(plots={}, verdicts=refuted)
    page = report.to_html()
    cards = re.findall(r'<article class="card ([^"]*)" id="([^"]+)">', page)
    assert cards == [("not-meaningful", "verdict-1"), ("no", "verdict-2")]
    shown = plain_text(page)
    assert (
        "/ not meaningful Is it stable under rewording? The explanation is not faithful: whether it is stable" in shown
    )
    assert "The answer about faithfulness is no; with the highlighted words reworded, the weights correlate" in shown
    assert "Not meaningful for an unfaithful explanation: stability under rewording." in shown
    assert f"{STABILITY_TITLE}: not meaningful. The answer about faithfulness is no; " in str(report)
    card = add_audit_to_card("", report, date(2026, 11, 19))
    assert f"- **{STABILITY_TITLE}**: not meaningful. The answer about faithfulness is no; " in card
    assert Report.from_dict(json.loads(json.dumps(report.to_dict()))) == report


def test_fingerprints_and_perturbations_of_vectors_are_named(html):
    facts = {**full_report().facts, "trained on": "579720c966e9", "data": "2f5800e50b2f"}
    same = replace(SHIFTS[0], probe="noise", after=SHIFTS[0].before)
    page = plain_text(full_report(plots={}, facts=facts, shifts=(SHIFTS[0], same)).to_html())
    assert "fingerprint of the training data 579720c966e9" in page
    assert "fingerprint of the audited data 2f5800e50b2f" in page
    assert page.count("No word changes: the perturbation changes word vectors") == 1
    assert "No word changes" not in plain_text(full_report(plots={}, shifts=SHIFTS[:1]).to_html())


def test_the_summary_names_the_gate_and_points_to_the_advice():
    advised = replace(VERDICTS[0], advice=(Advice(AdviceKind.MORE_OF_A_CLASS, numbers={"least": 20, "texts": None}),))
    page = full_report(plots={}, verdicts=(advised,)).with_gate(as_policy(["accuracy>=0.99"])).to_html()
    first = plain_text(page[: page.index("<main>")])
    assert "The gate failed: 1 of 1 requirement not met. Read the advice at the open questions." in first
    assert (
        f"to other words ({condition_name('reworded-top')}). Advice: Audit more texts: at least 20 texts of each of "
        "two predicted classes." in first
    )


def test_the_least_and_the_most_stable_text_stand_side_by_side(html):
    part = html[html.index("Least and most stable text") : html.index('<h3 class="probe">')]
    assert re.findall(r"<h4>([^<]+) <span class=\"aside\">shift ([\d.]+)<", part) == [
        ("Least stable", "0.213"),
        ("Most stable", "0.041"),
    ]
    alone = full_report(plots={}, shifts=SHIFTS[:1]).to_html()
    assert "Least and most stable text" not in alone


def test_texts_and_numbers_can_be_filtered_and_sorted_without_a_script(html):
    controls = re.findall(r'<input type="radio" name="([\w-]+)" id="([\w-]+)"( checked)?>', html)
    groups = {name for name, _, _ in controls}
    assert {"shifts-show", "numbers-show"} <= groups
    assert all(sum(name == group and bool(on) for name, _, on in controls) == 1 for group in groups)
    style = html[html.index("<style>") : html.index("</style>")]
    assert all(f"#{place}:checked" in style for _, place, on in controls if not on and not place.endswith("-all"))
    assert html.count('class="measure decides"') == len({name for verdict in VERDICTS for name in verdict.rows})


def test_wrong_predictions_can_be_shown_by_class_and_the_least_confident_first():
    base = full_report(plots={})
    error = base.evaluation.errors[0]
    errors = tuple(replace(error, row=i, predicted=("a", "b")[i % 2], explanation=None) for i in range(7))
    page = full_report(plots={}, evaluation=replace(base.evaluation, errors=errors)).to_html()
    assert "the most confident first; the first 5 are open." in page
    assert re.findall(r"> (first 5|all 7|predicted \w|\w+ confident first)</label>", page) == [
        "first 5",
        "all 7",
        "predicted a",
        "predicted b",
        "most confident first",
        "least confident first",
    ]
    assert re.findall(r'<div class="item( more)? class-(\d)">', page) == [
        ("", "0"), ("", "1"), ("", "0"), ("", "1"), ("", "0"), (" more", "1"), (" more", "0"),
    ]  # fmt: skip


def test_paper_shows_what_the_filters_of_the_screen_hide(html):
    """A filter is more specific than a rule for paper: without !important, five wrong predictions would be printed."""
    paper = html[html.rindex("@media print", 0, html.index("</style>")) : html.index("</style>")]
    rule = re.search(r"([^{}]+) { display: revert !important; }", paper)
    assert rule is not None
    assert {".page .item", ".page .shift", ".page .measure"} <= {part.strip() for part in rule[1].split(",")}
