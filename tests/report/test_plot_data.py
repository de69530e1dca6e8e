"""The plots: their numbers and positions by hand, and the same SVG every time."""

import re
import sys
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.stats import gaussian_kde

from report.audited import full_report, plots
from steadygaze.core.errors import UserError
from steadygaze.report.chart_svg import _box, _density, _Scale, draw
from steadygaze.report.plot_data import FIELDS, MOST, TABLES, TEXTS, pictures, reliability_picture
from steadygaze.results.formatting import bin_of


@pytest.fixture(scope="module")
def drawn():
    return {picture.name: picture for picture in pictures(full_report())}


def test_every_picture_has_a_title_a_caption_a_table_and_words_for_those_who_cannot_see_it(drawn):
    assert list(drawn) == list(FIELDS) == list(TEXTS) == list(TABLES)
    for picture in drawn.values():
        assert picture.title in picture.label
        assert picture.caption.endswith(".")
        assert picture.body
        assert all(len(line) == len(picture.head) for line in picture.body)
    assert "attention" in drawn["moves"].title
    assert "pgd-attention, points 200" in drawn["moves"].label


def test_quartiles_of_a_probe_by_hand():
    """Of 1, 2, 3, 4, 5 the quartiles are 2, 3 and 4."""
    points = [{"probe": "noise", "distance": d} for d in (5.0, 3.0, 1.0, 2.0, 4.0)]
    head, body = TABLES["moves"](points)
    assert head == ("change", "points", "lower quartile", "median", "upper quartile", "largest")
    assert body == [("noise", "5", "2.000", "3.000", "4.000", "5.000")]


def test_seeds_are_compared_by_the_share_of_the_top_word():
    assert [bin_of(share) for share in (0, 0.2499, 0.25, 0.74, 0.75, 1)] == [
        "under 0.25", "under 0.25", "under 0.5", "under 0.75", "up to 1", "up to 1",
    ]  # fmt: skip
    _, body = TABLES["seeds"]([{"max": 0.9, "distance": 0.1}, {"max": 0.1, "distance": 0.3}])
    assert [(line[0], line[3]) for line in body] == [("under 0.25", "0.300"), ("up to 1", "0.100")]


def test_the_correlation_with_the_gradient_by_hand():
    """x = 0, 1, 2 and y = 0, 2, 1: covariance 1/3, both variances 2/3, so the correlation is 1/2."""
    points = [{"attention": x, "gradient": y} for x, y in ((0, 0), (1, 2), (2, 1))]
    assert TABLES["gradient"](points)[1] == [("3", "0.500", "2.000", "1.000")]
    assert TABLES["gradient"](points[:1])[1][0][1] == "not defined"


def test_the_same_points_give_the_same_picture(drawn):
    assert [picture.svg for picture in pictures(full_report())] == [picture.svg for picture in drawn.values()]


def test_a_picture_shows_its_points(drawn):
    assert drawn["gradient"].svg.count("h0") == 1000  # a dot
    text = "".join(ElementTree.fromstring(drawn["aopc"].svg).itertext())
    for name in ("attention", "leave-one-out", "random", "lost probability", "share of the words"):
        assert name in text
    assert drawn["seeds"].svg.count('class="fill-series-1 stroke-series-1"') == 4  # a shape for each share
    assert "n = 308" in drawn["seeds"].svg


def test_more_points_than_the_maximum_are_thinned_and_the_caption_reports_it():
    many = [{"attention": i / 9000, "gradient": 0.5} for i in range(9000)]
    (picture,) = pictures(full_report(plots={"gradient": many}))
    assert picture.svg.count("h0") == 1800 <= MOST
    assert picture.caption.endswith("1,800 of 9,000 points are drawn.")
    assert picture.body[0][0] == "9,000"  # the table is of all of them


def test_a_reliability_diagram_shows_the_bins_and_names_the_texts_of_the_highest():
    """On an axis from 58 to 354, a confidence of 0.97 lies at 345.12; on one from 220 to 10, 0.972 lies at 15.88."""
    picture = reliability_picture(full_report().evaluation)
    assert re.findall(r"M([\d.]+),([\d.]+)h0", picture.svg)[-1] == ("345.12", "15.88")
    assert picture.svg.count("<rect") == len(picture.body) == 3
    assert "The highest bin, 0.9 to 1, has 324 of 400 texts. Bins without texts are omitted." in picture.caption
    assert picture.body[0] == ("0.5 to 0.6", "24", "0.550", "0.500", "0.314 to 0.686")
    assert "confidence 0.5 to 0.6, texts 24, mean confidence 0.550" in picture.label


def test_the_highest_bin_may_have_no_texts_and_a_regression_model_has_no_diagram():
    evaluation = full_report().evaluation
    low = replace(evaluation, reliability=evaluation.reliability[:1])
    assert "0.9 to 1, has 0 of 24 texts" in reliability_picture(low).caption
    assert reliability_picture(replace(evaluation, reliability=())) is None
    assert "Reliability" not in full_report(evaluation=replace(evaluation, reliability=())).to_html()


def test_a_picture_leaves_colors_and_fonts_to_the_page_and_brings_nothing_along(drawn):
    for picture in (*drawn.values(), reliability_picture(full_report().evaluation)):
        root = ElementTree.fromstring(picture.svg)
        assert {element.tag for element in root.iter()} <= {"svg", "g", "path", "line", "rect", "text", "tspan"}
        assert "width" not in root.attrib
        assert re.fullmatch(r"max-width:\d+px", root.attrib.pop("style"))
        for element in root.iter():
            assert element.get("fill", "none") == element.get("stroke", "none") == "none", element.attrib
            assert not {"id", "href", "style", "font-family", "clip-path"} & element.attrib.keys()
        assert not re.search(r"\d\.\d{3}", picture.svg)


def test_names_in_a_picture_are_text():
    bad = "<script>alert(1)</script>&\"'"
    points = [{"probe": bad, "distance": 0.1}, {"probe": "b", "distance": 0.2}]
    lines = [{"explainer": bad, "share": s, "erased": s, "kept": s} for s in (0.1, 0.5)]
    for picture in pictures(full_report(plots={"moves": points, "aopc": lines}, facts={"explanation": bad})):
        assert "<script" not in picture.svg
        assert "&lt;script&gt;" in picture.svg


@pytest.mark.parametrize("name", FIELDS)
def test_one_point_and_points_that_are_all_alike_are_drawn_too(name):
    point = plots()[name][0]
    for many in (1, 7):
        (picture,) = pictures(full_report(plots={name: [point] * many}))
        assert "NaN" not in picture.svg
        assert "undefined" not in picture.svg


def test_points_that_have_no_place_are_left_out_and_pictures_without_points_too():
    points = [
        {"probe": "a", "distance": 0.1},
        {"probe": "a", "distance": None},
        {"probe": "a", "distance": float("inf")},
    ]
    (picture,) = pictures(
        full_report(plots={"moves": points, "seeds": [], "gradient": [{"attention": None, "gradient": 1}]})
    )
    assert picture.body[0][:2] == ("a", "1")


def test_a_picture_nobody_knows_and_a_point_without_a_field_are_refused():
    with pytest.raises(UserError, match="unknown picture 'sedes': did you mean 'seeds'"):
        pictures(full_report(plots={"sedes": []}))
    with pytest.raises(UserError, match="a point of the picture 'seeds' has no 'max'"):
        pictures(full_report(plots={"seeds": [{"distance": 1.0}]}))


def test_plots_need_no_other_package(monkeypatch):
    for package in ("altair", "vl_convert", "matplotlib"):
        monkeypatch.setitem(sys.modules, package, None)
    html = full_report().to_html()
    assert html.count('<svg class="plot') == 5
    assert "pip install" not in html


def test_whiskers_by_hand():
    """The quartiles of 0, …, 8 and 100 are 2.25, 4.5 and 6.75; the whiskers end at 0 and 8, within 6.75 of the box."""
    assert _box(np.array([*range(9), 100.0])).tolist() == [0, 2.25, 4.5, 6.75, 8]


def test_the_density_is_that_of_scipy():
    values = np.random.default_rng(0).gamma(2, size=40)
    at, density = _density(values)
    expected = gaussian_kde(values)(at)
    np.testing.assert_allclose(density, expected / expected.max(), rtol=1e-12)
    assert (at[0], at[-1]) == (values.min(), values.max())


def test_positions_by_hand():
    """A quarter of the way from 10 to 50 is 20; the square root of 0.25 is half of the way to 1."""
    assert _Scale((0, 1), (10, 50))(0.25) == 20
    assert _Scale((0, 1), (10, 50), np.sqrt)(0.25) == 30
    assert _Scale((2, 2), (10, 50))(2) == 10  # all values are equal


def test_a_dot_lies_at_its_shares():
    """Both axes end at 0.25: a share of 0.0625 lies half of the way along the axis."""
    svg = draw("gradient", [{"attention": 0.0625, "gradient": 0.25}], "attention")
    (dot,) = re.findall(r"M([\d.]+),([\d.]+)h0", svg)
    assert tuple(map(float, dot)) == ((58 + 354) / 2, 10)
