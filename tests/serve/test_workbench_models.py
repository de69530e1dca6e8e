"""The page of the workbench with models of pairs and with rationalizers: explain, change words, compare."""

from dataclasses import replace

import numpy as np
import pytest

from estimator.tiny import LABELS, PAIRS, SMALL, TEXTS, fitted, fitted_pair, tiny
from report.browser import CHROMIUM
from serve.pages import change, expect, explain, serious_problems
from serve.serving import live_server
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.core.types import Example
from steadygaze.results.health import Health, HealthProblem, ProblemKind
from steadygaze.serve.served_models import ServedData, ServedModel

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
SYNONYMS = {"film": ["movie"], "good": ["fine"], "dull": ["boring"]}
TEXT, QUESTION = PAIRS[0]  # "the film was good and fine", "was the film good ?"


def entailment(pairs):
    """A black box of pairs: whether a word of the question is in the text."""
    return [[0.2, 0.8] if set(text.split()) & set(question.split()) else [0.9, 0.1] for text, question in pairs]


@pytest.fixture(scope="module")
def pair_address():
    box = as_adapter(entailment, classes=["neg", "pos"])
    models = [ServedModel("attention", as_adapter(fitted_pair()), SYNONYMS), ServedModel("box", box, SYNONYMS)]
    examples = [Example(text, label, question) for (text, question), label in zip(PAIRS[:2], LABELS, strict=False)]
    with live_server(*models, data=ServedData("pairs.csv", examples)) as address:
        yield address


@pytest.fixture(scope="module")
def rationalizer():
    settings = {**SMALL, "granularity": "token", "share": 0.3}
    return tiny(technique="a2r", settings=settings).fit(TEXTS, LABELS)


@pytest.fixture(scope="module")
def rationalizer_address(rationalizer):
    models = [("selector", rationalizer), ("attention", fitted())]
    with live_server(*(ServedModel(name, as_adapter(clf), SYNONYMS) for name, clf in models)) as address:
        yield address


@pytest.fixture
def pair_page(open_page, pair_address):
    page = open_page(pair_address)
    explain(page, TEXT, QUESTION)
    return page


@pytest.mark.slow
def test_a_pair_is_explained_with_its_question(pair_page):
    cards = pair_page.locator("#cards article")
    expect(cards).to_have_count(2)
    expected = fitted_pair().explain((TEXT, QUESTION))
    expect(cards.nth(0).locator("th.label")).to_have_text(str(expected.label))
    weights = cards.nth(0).locator('.word[data-field="text"]').evaluate_all("words => words.map((word) => word.title)")
    assert weights == [f"weight {weight:.3f}" for weight in expected.weights]
    for card in cards.all():
        expect(card.locator("p", has_text="Question:")).to_have_text(f"Question: {QUESTION}")
    expect(cards.nth(1).locator('.word[data-field="question"]').first).to_have_attribute("title", "weight 0.000")
    expect(cards.nth(0).locator(".certificate")).to_contain_text("label: certified radius")
    assert serious_problems(pair_page) == []


@pytest.mark.slow
def test_words_of_the_text_and_of_the_question_are_changed_and_undone(pair_page):
    change(pair_page, "film", "movie")
    expect(pair_page.get_by_label("Text to explain")).to_have_value("the movie was good and fine")
    box = pair_page.locator("#cards article").nth(1)
    expect(box.locator(".flip")).to_have_count(0)
    box.locator('.word[data-field="question"]', has_text="the").click()
    pair_page.get_by_role("button", name="Delete the word").click()
    expect(pair_page.get_by_label("Question about the text")).to_have_value("was film good ?")
    for word in ("was", "good"):
        change(pair_page, f"{word} (question)", "x", card=1)
    expect(box.locator(".flip").first).to_have_text("changed")
    expect(pair_page.locator("#history li")).to_have_count(5)
    expect(pair_page.locator("#history li").nth(2)).to_have_text("the → deleted (question)")
    link = pair_page.url
    pair_page.goto("about:blank")
    pair_page.goto(link)
    expect(pair_page.locator("#history li")).to_have_count(5)
    pair_page.locator("#history button").nth(1).click()
    expect(pair_page.get_by_label("Question about the text")).to_have_value(QUESTION)
    expect(pair_page.get_by_label("Text to explain")).to_have_value("the movie was good and fine")


@pytest.mark.slow
def test_models_of_pairs_are_compared(pair_page):
    pair_page.get_by_role("button", name="Compare").click()
    tables = pair_page.locator("#comparison table")
    expect(tables.nth(0).locator("tbody th")).to_have_text(["attention: leave-one-out", "box: leave-one-out"])
    expect(tables.nth(1).locator("tbody th")).to_have_text(TEXT.split())


@pytest.mark.slow
def test_a_pair_of_the_data_is_picked(pair_page):
    pair_page.get_by_role("button", name="Text of the data").click()
    expect(pair_page.locator("#status")).to_have_text("Label of the data: pos.")
    assert pair_page.get_by_label("Question about the text").input_value() in dict(PAIRS[:2]).values()


@pytest.mark.slow
def test_the_words_that_a_rationalizer_selects_are_shown_and_change_with_the_text(
    open_page, rationalizer, rationalizer_address
):
    page = open_page(rationalizer_address)
    explain(page, TEXT)
    card = page.locator("#cards article").first
    for text in (TEXT, TEXT.replace("good", "dull")):
        expected = rationalizer.explain(text)
        selected = np.flatnonzero(expected.weights)
        expect(card.locator("p.hint:not(.scale)")).to_have_text(f"Selected: {len(selected)} of 6 words.")
        expect(card.locator("th.label")).to_have_text(str(expected.label))
        shown = card.locator(".word").evaluate_all(
            "words => words.flatMap((word, i) => word.style.backgroundColor === 'transparent' ? [] : [i])"
        )
        assert shown == selected.tolist()
        if text == TEXT:
            change(page, "good", "dull")
    expect(card).to_contain_text("Compared with the first text")
    expect(card.locator(".certificate")).to_contain_text("not available")
    page.get_by_role("button", name="Compare").click()
    names = page.locator("#comparison table").nth(0).locator("tbody th")
    expect(names.nth(1)).to_have_text("attention: attention")
    assert page.locator("#comparison table").nth(1).locator("tbody tr").count() == 6


@pytest.mark.slow
def test_a_model_in_a_known_bad_state_says_so_in_the_choice_and_above_every_result(open_page):
    health = Health((HealthProblem(ProblemKind.COLLAPSED, detail="The weights are flat."),))
    models = [ServedModel("sound", as_adapter(fitted()), SYNONYMS)]
    models.append(ServedModel("collapsed", replace(as_adapter(fitted()), health=health), SYNONYMS))
    with live_server(*models) as address:
        page = open_page(address)
        explain(page, "the film was good")
        cards = page.locator("#cards article")
        expect(cards.nth(0).locator(".health")).to_have_count(0)
        expect(cards.nth(1).locator(".health")).to_have_text(f"⚠ {health.sentence}")
        expect(page.locator("#choices .health")).to_have_count(1)
        page.get_by_role("button", name="Compare").click()
        expect(page.locator("#status")).to_have_text("Ready.")
        expect(page.locator("#comparison .health")).to_have_count(1)
        page.get_by_role("button", name="Audit", exact=True).click()
        expect(page.locator("#audit-model option").nth(1)).to_contain_text("collapsed attention")
        assert serious_problems(page) == []
