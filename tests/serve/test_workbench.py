"""The page of the workbench in Chromium: every view, its failures, keyboard, zoom and accessibility."""

import json
import os
import random
import re
import threading
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

import pytest
from PIL import Image

from estimator.tiny import fitted
from report.browser import CHROMIUM
from serve.pages import change, expect, explain, serious_problems
from serve.serving import DATA, SYNONYMS, cheerful, live_server, served
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.serve.served_models import ServedModel

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
SCRIPT = "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"


@pytest.fixture(scope="module")
def address():
    words = ServedModel("words", as_adapter(fitted()), SYNONYMS)
    with live_server(served(), words, data=DATA) as address:
        yield address


@pytest.fixture
def page(open_page, address):
    page = open_page(address)
    expect(page.locator("#status")).to_have_text("Type a text and press Explain.")
    return page


@pytest.mark.slow
def test_a_word_is_substituted_and_the_change_undone(page):
    explain(page, "a good film")
    cards = page.locator("#cards article")
    expect(cards).to_have_count(2)
    expect(cards.nth(0).locator("th.label")).to_have_text("yes")
    cards.nth(0).get_by_role("button", name="good, weight").click()
    expect(page.locator("#alternatives button")).to_have_text(["fine", "great"])
    page.get_by_role("button", name="fine").click()
    expect(page.get_by_label("Text to explain")).to_have_value("a fine film")
    expect(cards.nth(0).locator(".flip").first).to_have_text("changed")
    expect(page.locator("#history li")).to_have_text(["a good film", "good → fine"])
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_label("Text to explain")).to_have_value("a good film")
    expect(page.locator("#history li")).to_have_count(0)


@pytest.mark.slow
def test_a_word_is_deleted_or_replaced_by_any_other(page):
    explain(page, "a good film")
    page.get_by_role("button", name="good, weight").first.click()
    page.get_by_role("button", name="Delete the word").click()
    expect(page.get_by_label("Text to explain")).to_have_value("a film")
    page.get_by_role("button", name="film, weight").first.click()
    expect(page.locator("#word-note")).to_have_text("Substitute a synonym:")
    page.get_by_label("Another word").fill("opera")
    page.get_by_label("Another word").press("Enter")
    expect(page.get_by_label("Text to explain")).to_have_value("a opera")


@pytest.mark.slow
def test_the_focus_stays_at_a_changed_word_and_the_result_is_announced(page):
    """With the keyboard alone; the second card has another model."""
    explain(page, "what a good dull film")
    word = page.locator("#cards article").nth(1).get_by_role("button", name="good, weight")
    word.focus()
    page.keyboard.press("Enter")
    page.locator("#alternatives button", has_text="fine").press("Enter")
    changed = page.locator("#cards article").nth(1).get_by_role("button", name="fine, weight")
    expect(changed).to_be_focused()
    expect(changed).to_have_class(re.compile("changed"))
    announcement = page.locator("#announcement")
    expect(announcement).to_contain_text("cheerful, leave-one-out: label changed to no, Jensen-Shannon divergence not")
    expect(announcement).to_contain_text(re.compile("words, attention: label changed to neg, .* divergence 0[.]"))
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Delete the word").press("Enter")
    next_word = page.locator("#cards article").nth(1).get_by_role("button", name="dull, weight")
    expect(next_word).to_be_focused()
    change(page, "film", "opera", card=1)
    expect(page.locator("#cards article").nth(1).get_by_role("button", name="opera, weight")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Delete the word").press("Enter")
    expect(next_word).to_be_focused()  # the last word was deleted
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(next_word).to_be_focused()
    page.locator("#reset").press("Enter")
    expect(page.get_by_label("Text to explain")).to_be_focused()


@pytest.mark.slow
def test_the_undo_list_goes_back_to_any_text(page):
    explain(page, "a good film")
    for word, other in (("good", "dull"), ("film", "opera")):
        change(page, word, other)
    expect(page.locator("#history li")).to_have_text(["a good film", "good → dull", "film → opera"])
    page.get_by_role("button", name="Go back to: good → dull").click()
    expect(page.get_by_label("Text to explain")).to_have_value("a dull film")
    expect(page.locator("#history li")).to_have_text(["a good film", "good → dull"])
    expect(page.get_by_label("Text to explain")).to_be_focused()


@pytest.mark.slow
def test_characters_outside_the_basic_plane_do_not_move_the_words(page):
    explain(page, "\U0001f600 a good \U0001d4d0 film \U0001f3ac")
    words = page.locator("#cards article").first.locator(".word")
    assert [text for text in words.all_text_contents() if text.isascii()] == ["a", "good", "film"]
    change(page, "film", "movie")
    expect(page.get_by_label("Text to explain")).to_have_value("\U0001f600 a good \U0001d4d0 movie \U0001f3ac")
    expect(page.locator("#cards article").first.get_by_role("button", name="movie, weight")).to_be_focused()


@pytest.mark.slow
def test_vacuous_certificates_are_shown_apart(page):
    explain(page, "the plot was what it was")
    words = page.locator("#cards article").nth(1).locator(".certificate .vacuous")
    few, none = "vacuous: the text has at most 7 words", "vacuous: no word has a synonym in the table"
    expect(words).to_have_text([few, none, none])
    explain(page, "a good film")
    expect(words).to_have_text([few, few])
    expect(page.locator("#cards article").nth(1).locator(".certificate .flip")).to_have_text("changed by a rewrite")


@pytest.mark.slow
def test_an_unknown_word_has_no_synonyms(page):
    explain(page, "a zebra")
    page.get_by_role("button", name="zebra, weight").first.click()
    expect(page.locator("#word-note")).to_have_text("The synonym table has no synonym of this word.")


@pytest.mark.slow
def test_certificates_are_shown_where_the_model_allows_them(page):
    explain(page, "a good film")
    black_box, words = page.locator("#cards article").all()
    expect(black_box.locator(".certificate")).to_contain_text("not available: a certificate needs the attention layer")
    expect(words.locator(".certificate")).to_contain_text("label: certified radius")
    expect(words.locator(".certificate")).to_contain_text("words with synonyms")
    expect(black_box.locator(".rewrite")).to_contain_text("A rewrite with another label:")
    black_box.get_by_role("button", name="Try this rewrite").click()
    expect(page.locator("#cards article").first.locator("td.flip").first).to_have_text("changed")
    expect(page.locator("#history li")).to_have_count(2)


@pytest.mark.slow
def test_a_card_never_calls_a_label_certified_that_a_click_changes(open_page):
    """Most rewrites of the text are "no": the smoothed model is certain of another label than the card shows."""
    table = {word: [f"{letter}{word}x" for letter in "bcdfghklmnp"] for word in ("good", "bright", "kind")}

    def two_of_three(texts):
        return [[0.02, 0.98] if sum(word in text.split() for word in table) > 1 else [0.986, 0.014] for text in texts]

    box = ServedModel("box", as_adapter(two_of_three, classes=["no", "yes"]), table)
    with live_server(box) as address:
        page = open_page(address)
        explain(page, "a good bright film")
        card = page.locator("#cards article")
        rows = card.locator(".certificate tr")
        expect(card.locator(".certificate caption")).to_contain_text("Certificate of the text as shown, for rewrites")
        expect(rows.filter(has_text="label yes, for all")).to_contain_text("changed by a rewrite")
        explain(page, "a good bright kind film")
        expect(rows.filter(has_text="label yes, for all")).to_contain_text("not certified: of 1,728 rewrites")
        expect(rows.filter(has_text="smoothed model")).to_contain_text("no, not yes as shown above: certified (99 %)")
        for word in ("good", "bright"):
            card.get_by_role("button", name=f"{word}, weight").click()
            page.locator("#alternatives button").first.click()
            expect(page.locator("#status")).to_have_text("Ready.")
        expect(card.locator("td.flip").first).to_have_text("changed")
        expect(rows.filter(has_text="label no, for all")).to_contain_text("certified")
        expect(card).not_to_contain_text("cannot")


@pytest.mark.slow
def test_a_link_restores_the_state(page, address):
    explain(page, "a good film")
    page.get_by_role("button", name="good, weight").first.click()
    page.get_by_role("button", name="great").click()
    expect(page.locator("#history li")).to_have_count(2)
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    expect(page.get_by_label("Text to explain")).to_have_value("a great film")
    expect(page.locator("#history li")).to_have_text(["a good film", "good → great"])


def shown(page) -> tuple[str, list[str], str]:
    """The link, the cards without rounded numbers and the list of changes of a page that has explained a text."""
    expect(page.locator("#status")).to_have_text("Ready.")
    parts = page.locator("#cards").locator("h3, .words, th.label, td.flip:not(.certificate td)").all_inner_texts()
    return page.url, parts, page.locator("#history").inner_html()


@pytest.mark.slow
def test_20_random_links_restore_the_same_page(open_page, address):
    """Each link is opened in a page of its own, and then in one that shows another state."""
    draw, used = random.Random(0), None
    words = ["good", "dull", "film", "Fine", "café", "\U0001f600", "100%", "#a&b=c", '"quoted"', "<b>", "电影"]
    for _ in range(20):
        versions = [{"text": " ".join(draw.choices(words, k=4)), "question": ""} for _ in range(draw.randint(1, 3))]
        choices = [("cheerful", "leave-one-out"), ("words", "attention"), ("words", "gradient")]
        chosen = [{"model": model, "explainer": name} for model, name in draw.sample(choices, draw.randint(1, 3))]
        state = {"view": "text", "versions": versions, "chosen": chosen, "audit": {}}
        fresh = open_page(f"{address}#{quote(json.dumps(state))}")
        first = shown(fresh)
        used = used or open_page(address)
        used.goto("about:blank")
        used.goto(first[0])
        assert shown(used) == first
        fresh.context.close()


@pytest.mark.slow
def test_a_link_that_cannot_be_copied_is_not_called_copied(page):
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#status")).to_contain_text("The address of the page is the link.")


@pytest.mark.slow
def test_a_state_is_exported_as_json_html_and_png(page):
    explain(page, f"a good film {SCRIPT}")
    contents = {}
    for form in ("JSON", "HTML", "PNG"):
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Save {form}").click()
        contents[form] = Path(download.value.path()).read_bytes()
    assert [result["model"] for result in json.loads(contents["JSON"])] == ["cheerful", "words"]
    assert contents["PNG"].startswith(b"\x89PNG")
    assert len(contents["PNG"]) > 5000
    picture = Image.open(BytesIO(contents["PNG"])).convert("RGB")
    shares = {color: count / picture.width / picture.height for count, color in picture.getcolors(1 << 24) or ()}
    assert shares[28, 36, 48] < 0.05  # the color of the text: no word is covered by it
    assert any(blue > red + 20 for red, _, blue in (c for c, share in shares.items() if share > 0.001))  # a highlight
    assert b"<script" not in contents["HTML"]
    assert b"<img" not in contents["HTML"]
    assert b'style="background-color: rgba(var(--' in contents["HTML"]
    assert b"default-src 'none'" in contents["HTML"]
    assert page.title() == "steadygaze workbench"


@pytest.mark.slow
def test_models_are_compared_word_by_word(page):
    explain(page, "a good film")
    page.get_by_role("button", name="Compare").click()
    tables = page.locator("#comparison table")
    expect(tables).to_have_count(2)
    expect(tables.nth(0).locator("tbody tr")).to_have_count(2)
    expect(tables.nth(1).locator("tbody th")).to_have_text(["a", "good", "film"])
    expect(tables.nth(1)).to_contain_text("★")
    page.get_by_label("leave-one-out").first.uncheck()
    expect(page.locator("#status")).to_have_text("Choose at least two models or explainers.")


@pytest.mark.slow
def test_an_audit_runs_and_its_texts_are_filtered_and_opened(page):
    page.get_by_role("button", name="Audit", exact=True).click()
    page.get_by_role("button", name="Start the audit").click()
    expect(page.locator("#report")).to_be_visible()
    texts = page.locator("#audit-texts tbody tr")
    expect(texts).to_have_count(4)
    page.get_by_label("Predictions").select_option("wrong")
    expect(texts).to_have_count(2)
    page.get_by_label("Contains").fill("waste")
    expect(texts).to_have_count(1)
    page.get_by_label("Contains").fill("")
    page.get_by_label("Predictions").select_option("all")
    page.locator("#filter-label").select_option("yes")
    expect(texts).to_have_count(1)
    page.locator("#filter-label").select_option("all")
    orders = page.locator("#order > option").all_text_contents()
    assert [order.partition(" (")[0] for order in orders[2:]] == [
        "largest shift",
        "least faithful",
        "least agreement with people",
    ]
    page.locator("#numbers summary", has_text="Faithfulness").click()
    page.get_by_role("button", name="texts sorted by comprehensiveness", exact=True).click()
    expect(page.locator("#audit-texts thead")).to_contain_text("comprehensiveness")
    assert serious_problems(page) == []
    page.reload()  # the job and the filters are still there
    expect(page.locator("#audit-texts thead")).to_contain_text("comprehensiveness")
    texts.first.get_by_role("button").click()
    expect(page.locator("#status")).to_have_text("Ready.")
    expect(page.locator("#cards h3").first).to_contain_text("cheerful")
    expect(page.get_by_label("Text to explain")).not_to_have_value("")


@pytest.mark.slow
def test_an_audit_on_a_phone_shows_labels_of_verdicts_the_number_of_texts_and_every_column(open_page, address):
    page = open_page(address, viewport={"width": 390, "height": 844})
    page.get_by_role("button", name="Audit", exact=True).click()
    page.get_by_role("button", name="Start the audit").click()
    expect(page.locator("#report")).to_be_visible()
    expect(page.locator("#audit-jobs li").first).to_contain_text("(cheerful, 4 texts, ")
    labels = page.locator("#verdicts .answer")
    assert len(set(labels.evaluate_all("all => all.map(one => getComputedStyle(one).color)"))) == len(
        set(labels.all_text_contents())
    ), "a color for each answer"
    assert page.locator("#audit-texts").evaluate("table => table.scrollWidth <= table.parentElement.clientWidth")
    expect(page.locator("#audit-texts thead th").last).to_have_text("probability")


@pytest.mark.slow
def test_tables_of_a_phone_break_no_word_and_show_that_they_scroll(open_page, address):
    page = open_page(address, viewport={"width": 390, "height": 844})
    explain(page, "a good unremarkable film")
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator("#comparison table")).to_have_count(2)
    heights = (
        page.locator("#comparison table")
        .nth(1)
        .locator("tbody th")
        .evaluate_all("cells => cells.map(cell => cell.getBoundingClientRect().height)")
    )
    assert len(heights) == 4
    assert len(set(heights)) == 1
    summary = page.locator("#comparison .scroll").first
    assert summary.evaluate("box => box.scrollWidth > box.clientWidth")
    assert summary.evaluate("box => getComputedStyle(box).backgroundAttachment") == "local, local, scroll, scroll"


@pytest.mark.slow
def test_a_file_is_explained_in_the_background_and_downloaded(page):
    name = "<img src=x onerror=alert(1)>.csv"
    content = f'text,note\na good film,"{SCRIPT.replace(chr(34), chr(34) * 2)}"\na dull film,x\n'.encode()
    page.get_by_role("button", name="Data", exact=True).click()
    page.get_by_label("File (").set_input_files({"name": name, "mimeType": "text/csv", "buffer": content})
    page.get_by_role("button", name="Explain the file").click()
    job = page.locator("#data-jobs li").first
    expect(job).to_contain_text("done")
    expect(job.locator("strong")).to_have_text(name)
    page.reload()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").first.click()
    assert Path(download.value.path()).read_text().startswith("text,note,predicted_label")
    page.get_by_role("button", name="Delete").first.click()
    expect(page.locator("#data-jobs")).to_contain_text("No jobs yet.")


DROP = """(zone) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File(["text\\na good film\\n"], "dropped.csv", {type: "text/csv"}));
  for (const type of ["dragover", "drop"]) zone.dispatchEvent(new DragEvent(type, {dataTransfer: transfer}));
}"""


@pytest.mark.slow
def test_a_dropped_file_is_explained_and_downloaded_in_every_format(page):
    page.get_by_role("button", name="Data", exact=True).click()
    page.locator("#drop").evaluate(DROP)
    expect(page.locator("#status")).to_have_text("dropped.csv: press Explain the file.")
    page.get_by_role("button", name="Explain the file").click()
    job = page.locator("#data-jobs li", has_text="dropped.csv")
    starts = {"CSV": b"text,predicted_label", "Parquet": b"PAR1", "HTML": b"<!doctype html>"}
    for form, start in starts.items():
        with page.expect_download() as download:
            job.get_by_role("button", name=f"Download {form}").click()
        assert Path(download.value.path()).read_bytes()[: len(start)].lower() == start.lower()
        assert re.fullmatch(rf"explained-[0-9a-f]{{16}}\.{form.lower()}", download.value.suggested_filename)
    job.get_by_role("button", name="Delete").press("Enter")
    expect(job).to_have_count(0)
    assert page.evaluate("document.activeElement.closest('#data-jobs') !== null")


@pytest.mark.slow
def test_a_job_shows_its_progress_survives_a_reload_and_is_canceled(open_page):
    go = threading.Event()
    go.set()

    def slow(texts):
        go.wait(10)
        return cheerful(texts)

    with live_server(served(function=slow)) as address:
        page = open_page(address)
        page.get_by_role("button", name="Data", exact=True).click()
        content = "\n".join(["text", *(f"a good film {i}" for i in range(64))]).encode()
        go.clear()
        page.get_by_label("File (").set_input_files({"name": "a.csv", "mimeType": "text/csv", "buffer": content})
        page.get_by_role("button", name="Explain the file").click()
        expect(page.locator("progress")).to_have_attribute("max", "64")
        page.reload()
        expect(page.locator("#data-jobs li")).to_contain_text("explaining 0 %")
        page.get_by_role("button", name="Cancel").click()
        go.set()
        expect(page.locator("#data-jobs li")).to_contain_text("canceled")


@pytest.mark.slow
def test_a_server_with_a_token_requires_it_and_keeps_it_out_of_the_address(open_page):
    token = "0123456789abcdef0123"
    with live_server(served(), token=token) as address:
        page = open_page(address)
        expect(page.locator("#status.error")).to_contain_text("needs its token")
        for typed in ("wrong", token):
            page.get_by_label("Token of this server").fill(typed)
            page.get_by_role("button", name="Continue").click()
        expect(page.locator("#status")).to_have_text("Type a text and press Explain.")
        expect(page.locator("#token-form")).to_be_hidden()
        explain(page, "a good film")
        assert token not in page.url
        assert page.evaluate("document.cookie + JSON.stringify(localStorage)") == "{}"


LINKS = [
    {"view": "text", "versions": [{"text": SCRIPT, "question": SCRIPT}]},
    {"view": "audit", "audit": {"job": f"../../{SCRIPT}", "order": SCRIPT, "label": SCRIPT, "offset": -1}},
    {"view": SCRIPT, "versions": [SCRIPT, 1, None], "chosen": [SCRIPT], "audit": {"job": 5, "label": 5}},
    {"view": "compare", "versions": [{"text": "a", "question": 1}], "chosen": {"model": "cheerful"}, "audit": None},
    [],
    None,
]


@pytest.mark.slow
@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("state", LINKS, ids=str)
def test_a_hostile_link_runs_no_script_and_leaves_a_page_that_works(open_page, address, state):
    page = open_page(f"{address}/#{quote(json.dumps(state))}")
    expect(page.locator("body[data-ready]")).to_have_count(1)
    page.get_by_role("button", name="Text", exact=True).click()
    explain(page, "a good film")
    assert page.locator("main img, main script").count() == 0
    assert page.title() == "steadygaze workbench"


@pytest.mark.slow
def test_a_wrong_file_is_refused_with_a_sentence(page):
    page.get_by_role("button", name="Data", exact=True).click()
    page.get_by_role("button", name="Explain the file").click()
    expect(page.locator("#status.error")).to_have_text("Choose a file first.")
    page.get_by_label("File (").set_input_files({"name": "a.csv", "mimeType": "text/csv", "buffer": b"review\ngood\n"})
    page.get_by_role("button", name="Explain the file").click()
    expect(page.locator("#status.error")).to_contain_text("has no column 'text'; its columns: review")


@pytest.mark.slow
def test_markup_in_texts_is_shown_and_not_run(page):
    explain(page, SCRIPT)
    expect(page.locator("#cards")).to_contain_text("document.title")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#comparison table")).to_have_count(2)
    assert page.locator("main img, main script").count() == 0
    assert page.title() == "steadygaze workbench"


@pytest.mark.slow
def test_axe_finds_a_problem_that_is_there(page):
    page.evaluate("document.body.append(document.createElement('button'))")
    assert [result[1] for result in serious_problems(page)] == ["button-name"]


@pytest.mark.slow
def test_markup_in_labels_and_names_of_models_is_not_run(browser):
    labels = [f"no {SCRIPT}", f"yes {SCRIPT}"]
    model = ServedModel(f"name {SCRIPT}", as_adapter(cheerful, classes=labels), SYNONYMS)
    with live_server(model) as address:
        page = browser.new_page()
        page.goto(address)
        expect(page.locator("#status")).to_have_text("Type a text and press Explain.")
        explain(page, "a good film")
        expect(page.locator("#cards th.label")).to_have_text(labels[1])
        for view in ("Compare", "Audit", "Data"):
            page.get_by_role("button", name=view, exact=True).click()
        assert page.locator("main img, main script").count() == 0
        assert page.title() == "steadygaze workbench"
        page.close()


@pytest.mark.slow
def test_the_page_reports_that_the_server_is_gone(page):
    explain(page, "a good film")
    page.route("**/v1/**", lambda route: route.abort())
    page.get_by_role("button", name="Explain", exact=True).click()
    expect(page.locator("#status.error")).to_have_text("The server does not answer. Is it still running?")
    page.unroute("**/v1/**")
    explain(page, "a good film")  # and works again


@pytest.mark.slow
def test_a_text_that_is_too_long_is_refused_with_a_sentence(page):
    page.evaluate("document.getElementById('text').removeAttribute('maxlength')")
    page.get_by_label("Text to explain").fill("a " * 10_001)
    page.get_by_role("button", name="Explain", exact=True).click()
    expect(page.locator("#status.error")).to_contain_text("20000 characters")


@pytest.mark.slow
def test_the_keyboard_reaches_everything(page):
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Text", exact=True)).to_be_focused()
    for _ in range(4):
        page.keyboard.press("Tab")
    expect(page.get_by_label("Text to explain")).to_be_focused()
    page.keyboard.type("a good film")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#status")).to_have_text("Ready.")
    word = page.get_by_role("button", name="good, weight").first
    for _ in range(60):
        page.keyboard.press("Tab")
        if word.evaluate("node => node === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.locator("#word-menu")).to_be_visible()
    expect(page.locator("#alternatives button")).to_have_count(2)
    page.locator("#alternatives button").first.press("Enter")
    expect(page.get_by_label("Text to explain")).to_have_value("a fine film")
    page.get_by_role("button", name="fine, weight").first.press("Enter")
    page.keyboard.press("Escape")
    expect(page.locator("#word-menu")).to_be_hidden()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_has_a_serious_accessibility_problem_or_needs_sideways_scrolling(browser, address, scheme):
    """1280 pixels at 200 % zoom are 640; a phone has 390."""
    context = browser.new_context(viewport={"width": 640, "height": 450}, color_scheme=scheme)
    page = context.new_page()
    page.goto(address)
    expect(page.locator("#status")).to_have_text("Type a text and press Explain.")
    explain(page, "a good film with a rather long sentence and unpronounceablyverylongwords" + "x" * 80)
    expect(page.locator(".certificate")).to_have_count(2)
    pictures = os.environ.get("STEADYGAZE_SCREENSHOTS")
    for view in ("Text", "Compare", "Audit", "Data"):
        page.get_by_role("button", name=view, exact=True).click()
        page.wait_for_load_state("networkidle")
        assert serious_problems(page) == [], view
        for width in (640, 390):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (view, width)
            if pictures:
                page.screenshot(path=f"{pictures}/{view.lower()}-{scheme}-{width}.png", full_page=True)
    context.close()
