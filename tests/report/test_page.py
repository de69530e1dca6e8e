"""The page: its content, that text is escaped, and its behavior in a browser."""

import re
from pathlib import Path

import pytest

from report.browser import Outline, browse
from steadygaze.report.page import _panels, render, ticks, write, write_explanations
from steadygaze.results.explanation import Explanation
from steadygaze.results.formatting import number as _number
from steadygaze.results.note import text_note
from steadygaze.results.row import Row

SCRIPT = "<script>document.title = 'ran'</script>"
CURVE = [
    {"epoch": 1, "loss": 0.8, "macro-f1": 0.5},
    {"epoch": 2, "loss": 0.4, "macro-f1": 0.9},
    {"epoch": 3, "loss": 0.6},
]


def explanation(text="very good", label="positive", **more) -> Explanation:
    words = list(re.finditer(r"\S+", text))
    tokens, spans = tuple(word.group() for word in words), tuple(word.span() for word in words)
    weights = tuple(1 / len(words) for _ in words)
    return Explanation(text, tokens, spans, weights, label, {label: 0.9}, **{"unit": "attention", **more})


def full_page(bad: str = "") -> str:
    return render(
        f"Title {bad}",
        lead=f"Lead {bad}",
        rows=[Row(f"accuracy{bad}", 0.9, 1200, (0.88, 0.92), {"corpus": f"tiny{bad}"}, (text_note(f"Note {bad}"),))],
        meaning={f"accuracy{bad}": f"How often it is right {bad}"},
        curve=[{"epoch": 1, f"loss{bad}": 0.5}, {"epoch": 2, f"loss{bad}": 0.25}],
        chosen=2,
        explanations=[
            explanation(
                f"very good {bad}",
                f"p{bad}",
                question=f"q{bad}",
                explainer=f"x{bad}",
                target=f"t{bad}",
                true_label=f"n{bad}",
            )
        ],
        notes=[f"Mind {bad}"],
        facts={f"Corpus{bad}": f"tiny{bad}"},
    )


def test_every_element_is_closed_where_it_was_opened():
    outline = Outline(full_page())
    assert outline.open == []
    assert [tag for tag, _ in outline.tags if re.fullmatch(r"h\d", tag)] == ["h1", "h2", "h2", "h2", "h2", "h3", "h2"]


def test_a_number_is_printed_with_its_interval_n_meaning_and_signature():
    text = " ".join(Outline(full_page()).text.split())
    assert "accuracy How often it is right Note 0.900 0.880 to 0.920 1,200 accuracy|corpus:tiny|n:1200" in text


def test_a_number_without_an_interval_is_marked():
    assert "no interval" in render("t", rows=[Row("parameters", 5.0, 1)])


def test_the_table_has_a_caption_and_its_headers_a_scope():
    tags = Outline(full_page()).tags
    assert sum(tag == "caption" for tag, _ in tags) == 1
    assert all(attributes.get("scope") in {"col", "row", "rowgroup"} for tag, attributes in tags if tag == "th")
    assert ("html", {"lang": "en"}) in tags


def test_parts_that_have_nothing_to_show_are_left_out():
    tags = [tag for tag, _ in Outline(render("Only a title")).tags]
    assert not {"section", "table", "svg", "article", "ul", "dl"} & set(tags)


def test_right_and_wrong_predictions_are_distinguished_in_words():
    labels = ["positive", "negative", None]
    page = render("t", explanations=[explanation(true_label=label) for label in labels])
    assert re.findall(r'class="verdict \w+">([^<]+)<', page) == ["✓ correct", "✗ wrong: the label is negative"]
    assert page.count('<article class="wrong">') == 1


def test_the_known_rationale_is_beside_the_top_words():
    page = render("t", explanations=[explanation("very good", rationales=((5, 9),))])
    assert '<dt>human rationale</dt>\n<dd><span class="known"><b>good</b></span>' in page
    assert '<span><b>very</b> 0.500</span> <span class="known"><b>good</b> 0.500</span>' in page


def test_attention_is_called_a_share_and_no_reason():
    html = render("Title", explanations=[explanation()])
    assert "<dt>attention weight, neither for nor against</dt>" in html
    assert "share of the attention, neither for nor against" in html
    assert "reason" not in html
    assert "<dt>gradient</dt>" in render("Title", explanations=[explanation(explainer="gradient")])


def test_markup_in_any_argument_is_text():
    page = full_page(SCRIPT)
    assert "<script" not in page
    outline = Outline(page)
    assert {tag for tag, _ in outline.tags} == {tag for tag, _ in Outline(full_page()).tags}
    assert outline.text.count(SCRIPT) >= 14


@pytest.mark.parametrize("quote", ['" onload="x', "' onload='x", "</style><b>", "</text></svg><b>", "{{ 7 * 7 }}"])
def test_nothing_breaks_out_of_an_attribute_or_a_drawing(quote):
    outline = Outline(full_page(quote))
    assert not any("onload" in attributes for _, attributes in outline.tags)
    assert {tag for tag, _ in outline.tags} == {tag for tag, _ in Outline(full_page()).tags}
    assert outline.open == []
    assert outline.text.count(quote) >= 14


def test_the_page_forbids_itself_to_load_or_run_anything():
    page = full_page()
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in page
    assert re.search(r"(src|srcset)\s*=|href\s*=(?!\"#)|url\(|@import|https?:", page) is None


def test_the_page_of_explanations_names_the_model_in_code_and_links_to_its_top(tmp_path: Path):
    write_explanations(tmp_path / "page.html", iter([]), "model <b>")
    html = (tmp_path / "page.html").read_text()
    assert 'Predictions of the model <code class="inline">model &lt;b&gt;</code>, and' in html
    assert (html.count('href="#top"'), html.count('id="top"')) == (1, 1)


def test_a_lone_surrogate_does_not_stop_the_writing(tmp_path: Path):
    write(tmp_path / "deep" / "page.html", full_page("\ud800"))
    assert "Title ?" in (tmp_path / "deep" / "page.html").read_text(encoding="utf-8")


def test_a_curve_has_a_panel_per_series_and_the_chosen_epoch_is_marked():
    loss, score = _panels(CURVE, chosen=2)
    assert (loss.name, score.name) == ("loss", "macro-f1")
    assert [(epoch, value) for _, _, epoch, value in loss.points] == [(1, 0.8), (2, 0.4), (3, 0.6)]
    assert loss.marked == loss.points[1]
    assert score.marked == score.points[1]
    assert _panels(CURVE, chosen=9)[0].marked is None


def test_points_are_at_their_coordinates():
    loss = _panels(CURVE, chosen=None)[0]
    assert [x for x, _, _, _ in loss.points] == [58, 194, 330]  # from 48 + 10 to 340 - 10
    assert [label for _, label in loss.x_ticks] == ["1", "2", "3"]
    assert loss.y_ticks[0] == (166, "0.4")  # the lowest value is a tick, at the bottom
    assert loss.points[1][1] == 166
    assert loss.points[0][1] == 40  # the highest at the top


@pytest.mark.parametrize("values", [[0.5], [0.5, 0.5], [0.0], [-3.0, 1e-9], [1e9, 2e9]])
def test_any_series_stays_inside_its_panel(values):
    panel = _panels([{"epoch": i, "x": value} for i, value in enumerate(values)], None)[0]
    assert all(48 <= x <= 340 and 40 - 1e-6 <= y <= 166 + 1e-6 for x, y, _, _ in panel.points)
    assert 2 <= len(panel.y_ticks) <= 7


def test_values_that_are_missing_or_not_finite_are_not_drawn():
    curve = [{"epoch": 1, "loss": float("nan"), "gap": float("inf")}, {"epoch": 2, "loss": 0.5}]
    assert [(panel.name, len(panel.points)) for panel in _panels(curve, None)] == [("loss", 1)]
    assert "not defined" in render("t", curve=curve)


def test_ticks_are_round_and_enclose_the_values():
    assert ticks(0.12, 0.93, 4) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert ticks(1, 3, 6, least=1.0) == [1, 2, 3]
    assert ticks(1, 30, 6, least=1.0) == [0, 5, 10, 15, 20, 25, 30]


@pytest.mark.parametrize(
    ("value", "printed"),
    [(0.98765, "0.988"), (0.0, "0.000"), (-0.25, "−0.250"), (1.2e-5, "1.2e-05"), (12345.6, "12,346"),
     (float("nan"), "not defined"), (float("-inf"), "−∞")],
)  # fmt: skip
def test_numbers_are_printed_for_people(value, printed):
    assert _number(value) == printed


@pytest.fixture(scope="module")
def opened(tmp_path_factory) -> tuple[str, str]:
    """The page with hostile text, as headless Chromium understood it, and what Chromium complained of."""
    page = tmp_path_factory.mktemp("browser") / "page.html"
    write(page, full_page(SCRIPT + "<img src=http://192.0.2.1/x onerror=\"document.title='ran'\">"))
    return browse(page)


@pytest.mark.slow
def test_a_browser_runs_no_script_of_a_text(opened):
    dom, _ = opened
    assert "<title>Title &lt;script&gt;" in dom
    assert "<script" not in dom
    assert "<img" not in dom


def test_a_browser_reports_no_errors_and_makes_no_requests(opened):
    _, log = opened
    assert "CONSOLE" not in log
    assert "192.0.2.1" not in log


def test_the_words_of_the_question_are_listed_with_their_weights():
    question = {"question_tokens": ("why", "so"), "question_spans": ((0, 3), (4, 6)), "question_weights": (0.7, -0.2)}
    pair = explanation(question="why so", **question, explainer="leave-one-out")
    text = " ".join(Outline(render("T", explanations=[pair])).text.split())
    assert "of the question why 0.700 so −0.200" in text
    assert "of the question" not in Outline(render("T", explanations=[explanation(question="why")])).text
