"""How strongly a word is drawn: weights that are all alike are pale, one that stands out is not."""

import io
import re

import pytest
from rich.console import Console

from results.test_explanation import READABLE, contrast
from steadygaze.results.explanation import Explanation
from steadygaze.results.highlight import AGAINST, FOR, OPAQUE, SELECTED, STANDS_OUT, highlight_html, legend


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


def test_weights_that_are_all_alike_are_all_pale():
    """20 words of 1/20: five even shares, 1/4, would have the full color; 1/20 has a fifth of it."""
    assert strengths(weighed([0.05] * 20)) == near(*[0.2] * 20)
    assert strengths(weighed([0.051, *[0.049] * 18, 0.067])) == near(0.204, *[0.196] * 18, 0.268)


def test_weights_of_another_scale_are_drawn_alike():
    """Gradients do not sum to one: 1000 times the weights are the same picture."""
    weights = [0.1, -0.02, 0.03, *[0.01] * 17]
    assert strengths(weighed([1000 * weight for weight in weights])) == strengths(weighed(weights))


def test_a_word_that_stands_out_has_the_full_color_and_the_others_their_part_of_it():
    """Sum 1 of 20 words: 0.43 is more than five even shares (0.25), so that 0.03 is drawn as 0.03 / 0.43."""
    assert strengths(weighed([0.43, *[0.03] * 19])) == near(1.0, *[0.07] * 19)


def test_of_few_words_half_of_all_weight_has_the_full_color():
    """Four words: five even shares are more than all there is."""
    assert strengths(weighed([0.5, 0.2, 0.2, 0.1])) == near(1.0, 0.4, 0.4, 0.2)
    assert strengths(weighed([0.25] * 4)) == near(*[0.5] * 4)


def test_what_was_not_read_has_no_share():
    """Ten of 20 words were read: five even shares of those are 1/2, and 1/10 has a fifth of the color."""
    e = weighed([0.1] * 10 + [0.0] * 10, read_to=29)
    assert strengths(e) == near(*[0.2] * 10)


def test_weights_of_both_signs_are_shares_of_all_weight_in_two_hues():
    """Half of |w| is negative: all are equally pale, and differ in hue."""
    html = highlight_html(weighed([0.05, -0.05] * 10))
    assert set(strengths(weighed([0.05, -0.05] * 10))) == {0.2}
    assert html.count(f"rgba({FOR[0]},") == html.count(f"rgba({AGAINST[0]},") == 10


def painted(e: Explanation) -> list[str]:
    """The words that have a background in a terminal."""
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system="truecolor", no_color=False)
    console.print(e)
    return re.findall(r"48;2;[\d;]+m(w\d+)", console.file.getvalue())


def test_a_terminal_paints_what_stands_out_and_no_even_share():
    assert painted(weighed([0.05] * 20)) == []
    assert painted(weighed([0.43, *[0.03] * 19])) == ["w0"]


def test_every_word_of_a_selection_is_painted_the_heavier_the_stronger():
    """0.4 of the color for being selected, and of the other 0.6 the part that |w| / 0.8 is."""
    e = weighed([0.8, 0, 0.2, 0.08, 1e-9, 2e-308, *[0] * 14], selected=True)
    assert strengths(e) == near(1.0, 0.55, 0.46, 0.4, 0.4)
    assert painted(e) == ["w0", "w2", "w3", "w4", "w5"]
    assert painted(weighed(e.weights)) == ["w0", "w2"]  # weights of an explainer that selects nothing
    assert SELECTED in legend([e])
    assert SELECTED not in legend([weighed([1.0])])


def test_the_scale_is_in_the_legend():
    assert f"if it is {STANDS_OUT} times the mean or half of all; equal weights are pale" in legend([weighed([1.0])])


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
