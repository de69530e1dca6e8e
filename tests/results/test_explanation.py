"""Explanation: what it holds, what it hands out, and that no text can do harm through it."""

import io
import json
import re
import sys
import unicodedata
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from steadygaze.core.errors import UserError, printable
from steadygaze.results.explanation import Explanation, Explanations
from steadygaze.results.highlight import AGAINST, FAINT, FOR, OPAQUE, highlight_html, legend

READABLE = 4.5  # WCAG 2.2, criterion 1.4.3, for text of ordinary size


def explain(text="good  plot,\nbad end", weights=(0.6, 0.1, 0.05, 0.2, 0.05), **more) -> Explanation:
    result = list(re.finditer(r"\w+|[^\w\s]", text))
    return Explanation(
        text=text,
        tokens=tuple(match.group() for match in result),
        spans=tuple(match.span() for match in result),
        weights=tuple(weights),
        **{"label": "positive", "probabilities": {"negative": 0.25, "positive": 0.75}, **more},
        **({} if "explainer" in more else {"unit": "attention"}),
    )


class HighlightParser(HTMLParser):
    """What a browser would show, and what every element carries."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.shown, self.elements = "", []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.shown += data


def printed(e: Explanation, **options) -> str:
    console = Console(file=io.StringIO(), width=200, **options)
    console.print(e)
    return console.file.getvalue()


def test_every_token_needs_a_span_and_a_weight():
    with pytest.raises(ValueError, match="5 tokens, 5 spans and 2 weights"):
        explain(weights=(0.5, 0.5))


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_weight_that_is_no_number_is_refused(wrong):
    with pytest.raises(ValueError, match="not a finite number"):
        explain(weights=(wrong, 0, 0, 0, 0))


def test_its_length_is_the_number_of_tokens():
    assert len(explain()) == 5


def test_top_returns_the_largest_weights_first_and_of_equal_ones_the_earlier():
    assert explain().top(4) == [("good", 0.6), ("bad", 0.2), ("plot", 0.1), (",", 0.05)]
    assert explain().top(0) == []
    assert len(explain().top(99)) == 5


def test_top_ranks_signed_weights_by_size_and_keeps_the_sign():
    assert explain(weights=(0.3, 0, 0, -0.9, 0)).top(2) == [("bad", -0.9), ("good", 0.3)]


def test_the_line_of_json_has_the_content_of_the_dict():
    for e in (
        explain(),
        explain(label=1, probabilities={0: 0.25, 1: 0.75}, rationales=((0, 4),), read_to=17, target=0),
    ):
        assert json.loads(e.to_json()) == e.to_dict()


def test_the_dict_survives_json_unchanged():
    e = explain(label=1, probabilities={0: 0.25, 1: 0.75}, rationales=((0, 4),), read_to=17, question="why?", target=0)
    values = e.to_dict()
    assert json.loads(json.dumps(values)) == values
    assert values == {
        "health": [],
        "text": "good  plot,\nbad end",
        "question": "why?",
        "label": 1,
        "target": 0,
        "probabilities": {"0": 0.25, "1": 0.75},
        "tokens": ["good", "plot", ",", "bad", "end"],
        "spans": [[0, 4], [6, 10], [10, 11], [12, 15], [16, 19]],
        "weights": [0.6, 0.1, 0.05, 0.2, 0.05],
        "explainer": "attention",
        "granularity": "word",
        "read_to": 17,
        "rationales": [[0, 4]],
        "bounds": None,
        "selected": False,
        "rationale": None,
        "question_tokens": None,
        "question_spans": None,
        "question_weights": None,
        "sentences": None,
        "reader_accuracy": None,
        "arbitrary_selections": None,
        "true_label": None,
        "value": None,
        "unit": "attention",
    }


def test_a_weight_that_rounds_to_zero_has_no_sign():
    assert "good 0.000" in printed(explain(weights=(-0.0004, 0, 0, 0, 0)))
    bounds = ((-0.0004, 0.7), (0.0, 0.2), (0.0, 0.1), (0.1, 0.3), (0.0, 0.1))
    assert "good 0.600 [0.000, 0.700]" in printed(explain(bounds=bounds))


def test_an_explainer_with_bounds_shows_them():
    e = explain(bounds=((0.5, 0.7), (0.0, 0.2), (0.0, 0.1), (0.1, 0.3), (0.0, 0.1)))
    assert "good 0.600 [0.500, 0.700] · bad 0.200 [0.100, 0.300]" in printed(e)
    assert "good 0.600 [0.500, 0.700]" in HighlightParser(e._repr_html_()).shown
    assert json.loads(e.to_json()) == e.to_dict()
    assert e.to_dict()["bounds"][3] == [0.1, 0.3]
    assert e.to_pandas().iloc[3].tolist() == ["bad", 12, 15, 0.2, 0.1, 0.3]
    with pytest.raises(ValueError, match="5 tokens and 1 bounds"):
        explain(bounds=((0.5, 0.7),))


MANY = ("seven of them are selected , however little each has", (0.9, 0, 1e-3, 1e-9, 2e-308, 0.05, 1e-4, 0, 0.04, 0))


def test_all_of_a_selection_is_listed_and_nothing_else():
    e = explain(*MANY, explainer="l2x", selected=True)
    line = "selected by l2x: seven · , · each · them · however · are · selected"
    assert line in printed(e).splitlines()
    assert line in HighlightParser(e._repr_html_()).shown
    assert [token for token, _ in e.top()] == line.partition(": ")[2].split(" · ")
    assert e.top(1) == [("seven", 0.9)]
    assert len(explain(*MANY, explainer="lime").top()) == 5
    assert json.loads(e.to_json()) == e.to_dict()
    assert e.to_dict()["selected"] is True
    assert "selected by l2x: no word has a weight" in str(explain("", (), explainer="l2x", selected=True))


def test_a_selection_with_probabilities_lists_them():
    bounds = ((0.5, 0.7), (0.0, 0.2), (0.0, 0.1), (0.1, 0.3), (0.0, 0.1))
    e = explain(weights=(0.6, 0, 0, 0.2, 0), bounds=bounds, explainer="cxplain", selected=True)
    assert "selected by cxplain: good 75.0 % [62.5 %, 87.5 %] · bad 25.0 % [12.5 %, 37.5 %]\n" in printed(e)


def test_pandas_gets_one_row_per_token():
    frame = explain().to_pandas()
    assert list(frame.columns) == ["token", "start", "end", "weight"]
    assert frame.iloc[3].tolist() == ["bad", 12, 15, 0.2]


def test_missing_pandas_is_an_error_of_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for result in (explain(), Explanations([explain()])):
        with pytest.raises(UserError, match="needs pandas, which is not installed"):
            result.to_pandas()


def test_the_top_word_is_drawn_strongest_and_the_others_by_the_root_of_their_share():
    """√(share / ½) of 0.6: √0.2, √0.1, √0.4 and √0.1; 0.6 is above ½."""
    alphas = re.findall(r"rgba\(37,99,235,([\d.]+)\)", highlight_html(explain()))
    assert [float(alpha) for alpha in alphas] == [OPAQUE, 0.268, 0.190, 0.379, 0.190]


def test_negative_weights_are_drawn_in_the_other_hue():
    html = highlight_html(explain(weights=(0.3, 0, 0, -0.6, 0)))
    assert re.findall(r"rgba\(([\d,]+),([\d.]+)\)", html) == [("37,99,235", "0.465"), ("190,78,0", "0.600")]


def test_the_number_of_every_word_is_its_tooltip():
    titles = [
        attributes["title"]
        for _, attributes in HighlightParser(highlight_html(explain())).elements
        if "title" in attributes
    ]
    assert titles == ["good: 0.6000", "plot: 0.1000", ",: 0.0500", "bad: 0.2000", "end: 0.0500"]


def test_weights_that_are_all_zero_draw_nothing_and_a_note_reports_it():
    e = explain(weights=(0, 0, 0, 0, 0))
    assert "background" not in highlight_html(e)
    assert "attention weight, neither for nor against: no word has a weight" in str(e)
    assert e.shading()["remark"] == e.negligible == "no word matters much: every weight is 0"


def test_an_empty_text_can_be_drawn():
    e = explain(text="", weights=())
    assert HighlightParser(highlight_html(e)).shown == ""
    assert str(e) == "\n→ positive 75.0 %\nattention weight, neither for nor against: no word has a weight"


def test_pieces_that_share_a_character_add_up_to_one_mark():
    """A byte-level tokenizer cuts one emoji into pieces: 0.2 + 0.3 of a largest 0.5 is drawn at full strength."""
    e = Explanation("🙂 ok", ("🙂", "🙂", "ok"), ((0, 1), (0, 1), (2, 4)), (0.2, 0.3, 0.5), "p", {"p": 1.0})
    html = highlight_html(e)
    assert HighlightParser(html).shown == "🙂 ok"
    assert html.count("0.600)") == 2
    assert 'title="🙂: 20.0 %, 🙂: 30.0 %"' in html


def test_rationales_are_underlined_through_words_and_the_gaps_between_them():
    elements = HighlightParser(html := highlight_html(explain(rationales=((2, 10),)))).elements
    assert sum("underline" in attributes.get("style", "") for _, attributes in elements) == 3  # "od", "  ", "plot"
    assert HighlightParser(html).shown == "good  plot,\nbad end"
    assert "human rationale" in legend([explain(rationales=((2, 10),))])
    assert "human rationale" not in legend([explain()])


def test_text_that_was_not_read_is_grayed_and_reported():
    e = explain("good rest of it", (1.0, 0, 0, 0), read_to=4)
    assert HighlightParser(highlight_html(e)).shown == "good [truncated: longer than the limit]  rest of it"
    assert re.search(r'opacity:0.6" title="truncated: longer than the limit"> <span', highlight_html(e))
    assert "truncated: longer than the limit (from character 4 of 15)" in str(e)
    assert "not read" not in str(explain("good rest of it", (1.0, 0, 0, 0), read_to=15))


@given(st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"])), st.data())
def test_any_text_is_shown_letter_for_letter_and_adds_no_element(text, data):
    count = len(re.findall(r"\w+|[^\w\s]", text))
    edge = st.integers(0, len(text))
    rationales = tuple(sorted(pair) for pair in data.draw(st.lists(st.tuples(edge, edge), max_size=3)))
    read = HighlightParser(highlight_html(explain(text, [1 / (i + 1) for i in range(count)], rationales=rationales)))
    assert read.shown == text
    assert {tag for tag, _ in read.elements} <= {"div", "span"}
    assert {name for _, attributes in read.elements for name in attributes} <= {"class", "dir", "style", "title"}


def test_markup_in_any_field_is_shown_and_not_run():
    bad = "\"'><script>x</script>"
    e = Explanation(bad, (bad,), ((0, len(bad)),), (1.0,), bad, {bad: 1.0}, bad, "<b>", bad, rationales=((0, 5),))
    for html in (e._repr_html_(), e.to_html()):
        assert "<script" not in html
        assert "<b>" not in html
        assert HighlightParser(html).shown.count("<script>x</script>") >= 3


def test_the_page_is_complete_written_and_returned(tmp_path: Path):
    page = explain().to_html(tmp_path / "new" / "page.html")
    assert (tmp_path / "new" / "page.html").read_text(encoding="utf-8") == page
    assert page.startswith("<!doctype html>")
    assert "default-src 'none'" in page
    assert "<title>positive: good plot, bad end</title>" in page
    assert explain()._repr_html_() in page


def test_a_lone_surrogate_stops_neither_file_nor_notebook_nor_terminal(tmp_path: Path):
    e = explain("bad \ud800 end", (0.5, 0.1, 0.4))
    e.to_html(tmp_path / "page.html")
    e._repr_html_().encode()
    assert "bad ? end" in printed(e)


def test_escape_sequences_in_a_text_do_not_reach_the_terminal():
    e = explain("bad\x1b[2Jend\x9b1m\rx", (0.2,) * 7, label="a\x1bb")
    assert "\x1b" not in str(e) + printed(e)
    assert str(e).startswith("bad�[2Jend�1m x\n→ a\\x1bb")
    assert "\x1b" not in repr(e)


@given(st.text(st.characters()))
def test_printable_text_keeps_its_length_and_holds_no_control_but_tab_and_line_feed(text):
    shown = printable(text)
    assert len(shown) == len(text)
    assert {c for c in shown if unicodedata.category(c) in ("Cc", "Cs")} <= {"\t", "\n"}
    assert all(
        a == b
        for a, b in zip(text, shown, strict=True)
        if unicodedata.category(a) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
    )


def test_attention_is_called_a_share_and_other_weights_by_their_explainer():
    highlighted = "share of the attention, neither for nor against"
    assert highlighted in legend([explain()])
    assert highlighted in explain()._repr_html_()
    other = explain(weights=(0.3, 0, 0, -0.9, 0), explainer="gradient")
    assert "gradient: bad -75.0 % · good 25.0 %" in str(other)
    assert "attention" not in str(other) + other._repr_html_()


def test_without_color_the_terminal_shows_everything():
    lines = printed(explain(rationales=((12, 15),), target="negative", question="Why?"), no_color=True).splitlines()
    assert [line.rstrip() for line in lines] == [
        "Question: Why?",
        "good  plot,",
        "bad end",
        "→ positive 75.0 % (explained: negative)",
        "attention weight, neither for nor against: good 0.600 · bad 0.200 · plot 0.100 · , 0.050 · end 0.050",
        "human rationale: bad",
        "shade: share of the attention, neither for nor against a class; full from 50 %, none below 1 %",
    ]


def test_with_color_the_background_follows_the_weight():
    shown = printed(explain(), force_terminal=True, color_system="truecolor", no_color=False)
    assert "48;2;37;99;235mgood" in shown  # the top word: the pure hue
    part = (0.2 / 0.5) ** 0.5
    mixed = [round(gray + part * (hue - gray)) for gray, hue in zip(FAINT, FOR, strict=True)]
    assert "48;2;{};{};{}mbad".format(*mixed) in shown
    faint = printed(explain(weights=(0.6, 0.1, 0.05, 0.2, 0.009)), force_terminal=True, color_system="truecolor")
    assert re.search(r"48;[^m]*mend", faint) is None  # below the floor


def test_the_representation_is_one_short_line():
    e = explain("good " * 50, [0.02] * 50)
    assert repr(e).startswith("<Explanation 'good good")
    assert len(repr(e)) < 150


@pytest.mark.parametrize("hue", [FOR, AGAINST])
@pytest.mark.parametrize(("paper", "ink"), [((255, 255, 255), (27, 32, 39)), ((20, 23, 28), (230, 233, 237))])
def test_text_stays_legible_on_the_strongest_mark(hue, paper, ink):
    mixed = tuple(OPAQUE * h + (1 - OPAQUE) * p for h, p in zip(hue, paper, strict=True))
    assert contrast(mixed, ink) >= READABLE


@pytest.mark.parametrize("hue", [FOR, AGAINST])
@pytest.mark.parametrize("share", [0.14, 0.5, 1.0])
def test_white_stays_legible_on_every_mark_of_a_terminal(hue, share):
    assert contrast(tuple(f + share * (h - f) for f, h in zip(FAINT, hue, strict=True)), (255, 255, 255)) >= READABLE


def contrast(color, other) -> float:
    """WCAG 2.2: (L1 + 0.05) / (L2 + 0.05) of the relative luminances."""
    low, high = sorted((luminance(color), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(color) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_module_loads_no_torch():
    import subprocess

    code = "import sys, steadygaze.results.explanation, steadygaze.report; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def paired(**changes):
    fields = {
        "question": "why bad?",
        "question_tokens": ("why", "bad", "?"),
        "question_spans": ((0, 3), (4, 7), (7, 8)),
    }
    return explain(explainer="lime", **{**fields, "question_weights": (0.1, -0.9, 0.0), **changes})


def test_the_words_of_a_question_are_drawn_and_listed_with_their_weights():
    e = paired()
    assert "question: bad -45.0 % · why 5.0 %" in str(e)
    assert 'title="bad: -45.0 %"' in e.to_html()
    assert e.question_explanation.tokens == ("why", "bad", "?")
    assert json.loads(e.to_json())["question_weights"] == [0.1, -0.9, 0.0]
    assert e.to_dict()["question_tokens"] == ["why", "bad", "?"]


def test_both_texts_of_a_pair_have_one_scale_of_color():
    """Of all weight of both, 2.0: "bad" is 0.45 and "good" 0.3, so they have √0.9 and √0.6 of 0.6."""
    html = paired().to_html()
    assert "rgba(190,78,0,0.569)" in html
    assert "rgba(37,99,235,0.465)" in html


def test_a_question_without_weights_is_written_as_it_is():
    e = explain(question="why bad?")
    assert e.question_explanation is None
    assert "Question: why bad?" in str(e)
    assert "of the question" not in str(e)


@pytest.mark.parametrize("changes", [{"question": None}, {"question_weights": (0.1,)}])
def test_weights_of_a_question_must_fit_it(changes):
    with pytest.raises(ValueError, match="question"):
        paired(**changes)
