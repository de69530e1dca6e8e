"""The pictures: their numbers by hand, the same SVG every time, and a page that does without the packages that draw."""

import re
import sys
from xml.etree import ElementTree

import pytest

from report.audited import full_report, plots
from steadygaze.core.errors import UserError
from steadygaze.report import plots as plots_module
from steadygaze.report.charts import SHADES, clean_svg
from steadygaze.report.plots import FIELDS, MOST, TABLES, TEXTS, pictures
from steadygaze.results.formatting import bin_of


@pytest.fixture(scope="module", autouse=True)
def charts_drawn_each_time():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots_module, "_draw", plots_module._draw.__wrapped__)
        yield


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


def test_seeds_are_told_by_the_share_of_the_heaviest_word():
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
    assert drawn["gradient"].svg.count('class="fill-series-1"') == 1000
    text = "".join(ElementTree.fromstring(drawn["aopc"].svg).itertext())
    for name in ("attention", "leave-one-out", "random", "lost probability", "share of the words"):
        assert name in text
    assert drawn["seeds"].svg.count('class="fill-series-1 stroke-series-1"') == 4  # a shape for each share
    assert "n = 308" in drawn["seeds"].svg


def test_more_points_than_a_page_can_bear_are_thinned_and_the_caption_says_so():
    many = [{"attention": i / 9000, "gradient": 0.5} for i in range(9000)]
    (picture,) = pictures(full_report(plots={"gradient": many}))
    assert picture.svg.count('class="fill-series-1"') == 1800 <= MOST
    assert picture.caption.endswith("1,800 of 9,000 points are drawn.")
    assert picture.body[0][0] == "9,000"  # the table is of all of them


def test_a_picture_leaves_colors_and_fonts_to_the_page_and_brings_nothing_along(drawn):
    for picture in drawn.values():
        root = ElementTree.fromstring(picture.svg)
        assert {element.tag for element in root.iter()} <= {"svg", "g", "path", "line", "rect", "text", "tspan"}
        assert "width" not in root.attrib
        assert re.fullmatch(r"max-width:\d+px", root.attrib.pop("style"))
        for element in root.iter():
            assert element.get("fill", "none") == element.get("stroke", "none") == "none", element.attrib
            assert not {"id", "href", "style", "font-family", "clip-path"} & element.attrib.keys()
        assert not any(shade in picture.svg for shade in SHADES.values())
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


@pytest.mark.parametrize("package", ["altair", "vl_convert"])
def test_without_the_packages_that_draw_the_page_has_tables_and_says_what_to_install(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "steadygaze.report.charts", raising=False)
    report = full_report()
    assert all(picture.svg is None for picture in pictures(report))
    html = report.to_html()
    assert "pip install &#39;steadygaze[report]&#39;" in html
    assert "<svg" not in html
    assert html.count('<details class="fallback" open>') == 4


def test_tidying_keeps_only_what_is_drawn():
    """Colors that stand for a class become it; what is not drawn, and what is not seen, goes."""
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="20"><script>x</script><rect fill="transparent"/>'
        f'<g class="a"><path d="M0,0L1.23456,2" fill="{SHADES["ink"]}" stroke="none" aria-label="n" onclick="x"/>'
        '<path d="" /><a href="http://x"><text>link</text></a></g><g><g></g></g><text opacity="1">a &lt; b</text></svg>'
    )
    assert clean_svg(svg, "x") == (
        '<svg class="plot plot-x" viewBox="0 0 10 20" style="max-width:12px" aria-hidden="true">'
        '<path class="fill-ink" d="M0,0L1.23,2" stroke="none"></path><text>a &lt; b</text></svg>'
    )
