"""How strongly a word is drawn: on an absolute scale for each unit of weights, which the legend prints."""

import io
import math
import re

import pytest
from rich.console import Console

from results.test_explanation import READABLE, contrast
from steadygaze.results.explanation import Explanation
from steadygaze.results.highlight import AGAINST, FAINT, FOR, GRAY, OPAQUE, highlight_html, legend
from steadygaze.results.shade import FLOOR, LEVELS, UNITS, effect, level_text, meaning


def weighed(weights, **more) -> Explanation:
    tokens = tuple(f"w{i}" for i in range(len(weights)))
    starts = [sum(len(token) + 1 for token in tokens[:i]) for i in range(len(tokens))]
    spans = tuple((start, start + len(token)) for start, token in zip(starts, tokens, strict=True))
    return Explanation(" ".join(tokens), tokens, spans, tuple(weights), "p", {"p": 1.0}, **more)


def strengths(e: Explanation) -> list[float]:
    """Of the full color."""
    return [float(alpha) / OPAQUE for alpha in re.findall(r"rgba\([\d,]+,([\d.]+)\)", highlight_html(e))]


def near(*values: float):
    return pytest.approx(values, abs=0.001)  # a page writes three decimals


def test_the_strength_is_the_root_of_the_effect_relative_to_half():
    """√(0.125 / 0.5) = 0.5; 0.5 and more have the full color; 0.005 is below the floor and gray."""
    e = weighed([0.125, -0.5, 0.9, 0.005], unit="probability")
    assert strengths(e) == near(0.5, 1.0, 1.0, GRAY / OPAQUE)
    assert drawn_gray(e) == ["w3"]


def test_a_logit_is_drawn_as_the_largest_change_of_its_probability():
    """σ(w/2) − σ(−w/2) = tanh(w/4): ½ for w = 2 ln 3, and 1/8 for w = 2 ln (9/7)."""
    e = weighed([2 * math.log(3), -2 * math.log(9 / 7), 0.03], unit="logit")
    assert strengths(e) == near(1.0, 0.5, GRAY / OPAQUE)
    for weight in (0.3, 2.0, 7.0):
        change = 1 / (1 + math.exp(-weight / 2)) - 1 / (1 + math.exp(weight / 2))
        assert effect(weight, "logit") == pytest.approx(change, abs=1e-12)


def test_equal_weights_have_equal_shade_whatever_else_is_in_the_text():
    """Beside a larger weight, in a longer text, and alone."""
    for unit in ("probability", "logit", "attention"):
        texts = [[0.2], [0.2, 0.9], [0.2, *[0.001] * 300]]
        assert len({strengths(weighed(weights, unit=unit))[0] for weights in texts}) == 1


def test_a_small_change_of_the_probability_is_paler_than_a_large_share_of_attention():
    """Formerly both had the full color as the largest of their texts."""
    (change,) = strengths(weighed([0.0092], unit="probability"))
    (share,) = strengths(weighed([0.369], unit="attention"))
    assert (change, share) == near(GRAY / OPAQUE, 0.859)


@pytest.mark.parametrize("unit", ["probability", "logit"])
def test_a_text_whose_weights_are_a_thousandth_turns_gray_and_no_word_matters_much(unit):
    weights = [0.9, -0.4, 0.05]
    before, after = weighed(weights, unit=unit), weighed([weight / 1000 for weight in weights], unit=unit)
    assert before.negligible == ""
    assert after.negligible.startswith("no word matters much: every weight is below 0.0")
    assert drawn_gray(after) == ["w0", "w1", "w2"]
    assert after.negligible in after._repr_html_()
    assert after.negligible in str(after)
    assert painted(before) == ["w0", "w1", "w2"]
    assert painted(after) == []
    assert not any(after.shading()["text"])


def test_even_attention_of_a_long_text_is_gray_and_a_word_with_a_tenth_of_it_is_not():
    """200 words of 0.5 % each; 0.1 has √0.2 of the color, as in any other text."""
    assert weighed([0.005] * 200, unit="attention").negligible
    long = weighed([0.1, *[0.9 / 199] * 199], unit="attention")
    assert strengths(long)[0] == pytest.approx(0.2**0.5, abs=0.001)
    assert long.negligible == ""


def test_weights_without_a_scale_of_their_own_are_shares_of_all_weight():
    """Gradients and values of a regression: 1000 times the weights are the same picture, and so is the other sign."""
    weights = [0.3, -0.1, 0.1]  # shares 0.6, 0.2, 0.2
    assert strengths(weighed(weights)) == near(1.0, 0.4**0.5, 0.4**0.5)
    assert strengths(weighed([1000 * weight for weight in weights])) == strengths(weighed(weights))
    html = highlight_html(weighed([0.05, -0.05] * 10))
    assert html.count(f"rgba({FOR[0]},") == html.count(f"rgba({AGAINST[0]},") == 10


def test_shares_of_a_pair_are_shares_of_both_texts():
    """0.25 of 1.0, in the text and in the question."""
    both = {"question_tokens": ("a", "b"), "question_spans": ((0, 1), (2, 3)), "question_weights": (0.25, 0.5)}
    e = weighed([0.25], question="a b", **both)
    assert e.shading()["text"] == near(0.5**0.5)
    assert e.shading()["question"] == near(0.5**0.5, 1.0)
    assert str(round(OPAQUE * 0.5**0.5, 3)) in e._repr_html_()


def drawn_gray(e: Explanation) -> list[str]:
    return re.findall(rf"rgba\({','.join(map(str, FAINT))},{GRAY:.3f}\)[^>]*>(w\d+)", highlight_html(e))


def painted(e: Explanation) -> list[str]:
    """The words that have a background in a terminal."""
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system="truecolor", no_color=False)
    console.print(e)
    return re.findall(r"48;2;[\d;]+m(w\d+)", console.file.getvalue())


def test_a_terminal_paints_every_word_above_the_floor():
    assert painted(weighed([0.005, 0.02, 0.5], unit="attention")) == ["w1", "w2"]


def test_every_selected_word_is_painted_alike():
    """A selected word has no weight, only an order; 0 is not selected."""
    e = weighed([0.8, 0, 0.2, 1e-9, 2e-308, *[0] * 15], selected=True, unit="selection")
    assert strengths(e) == near(1.0, 1.0, 1.0, 1.0)
    assert painted(e) == ["w0", "w2", "w3", "w4"]
    assert "selected words" in legend([e])


@pytest.mark.parametrize("unit", UNITS)
def test_the_scale_is_printed_in_the_legend_and_in_a_terminal(unit):
    e = weighed([0.7, 0.3], unit=unit)
    name = meaning(unit)
    assert name in legend([e])
    if unit != "selection":
        assert name in str(e)
        assert all(level_text(level, unit) in legend([e]) for level in LEVELS)
        assert f"none below {level_text(FLOOR, unit)}" in str(e)


def test_the_legend_shows_the_color_of_a_weight_of_that_size():
    """A swatch has the opacity of the word whose weight it names, in either hue."""
    e = weighed([0.05, 0.2, 0.5, -0.2], unit="probability")
    for weight, part in zip(e.weights[:3], strengths(e), strict=False):
        assert f"{OPAQUE * part:.3f})" in legend([e])
        assert f">{weight:g}</span>" in legend([e])
    assert f"rgba({AGAINST[0]}," in legend([e])
    assert f"rgba({AGAINST[0]}," not in legend([weighed([0.2], unit="probability")])


def test_attention_is_labeled_as_neither_for_nor_against():
    e = weighed([0.7, 0.3], unit="attention", explainer="attention")
    assert "neither for nor against" in legend([e])
    assert e.caption == "attention weight, neither for nor against"


THEMES = {
    "JupyterLab light": ((255, 255, 255), (33, 33, 33)),
    "JupyterLab dark": ((17, 17, 17), (224, 224, 224)),
    "VS Code dark": ((31, 31, 31), (204, 204, 204)),
    "Colab dark": ((56, 56, 56), (213, 213, 213)),
}


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("hue", [FOR, AGAINST])
def test_the_strongest_mark_is_legible_in_notebooks(name, hue):
    """The text has the notebook's own color: none is set, and the mark lets the paper through."""
    paper, ink = THEMES[name]
    mixed = tuple(OPAQUE * h + (1 - OPAQUE) * p for h, p in zip(hue, paper, strict=True))
    assert contrast(mixed, ink) >= READABLE
    assert "color:" not in weighed([0.5, 0.5])._repr_html_().replace("background-color:", "")
