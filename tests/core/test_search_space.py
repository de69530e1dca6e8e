"""Search spaces: how they are written, and that every declared one is valid."""

from typing import Annotated

import pytest

from steadygaze.core.errors import UserError
from steadygaze.core.search_space import SearchChoice, SearchRange, declared_spaces, parse_space
from steadygaze.core.settings import Field, settings
from steadygaze.study.tune_config import TuneConfig, default_values, search_spaces
from steadygaze.techniques import TECHNIQUES


@settings
class Example:
    rate: Annotated[float, Field(gt=0), SearchRange(0.1, 1.0, log=True)] = 0.5
    size: Annotated[int, SearchChoice(8, 16)] = 8
    other: int = 3


def test_spaces_stand_beside_their_settings():
    assert declared_spaces(Example) == {"rate": SearchRange(0.1, 1.0, log=True), "size": SearchChoice(8, 16)}
    assert Example(rate=0.2).rate == 0.2


@pytest.mark.parametrize(
    ("text", "space"),
    [
        ("0.01:10:log", SearchRange(0.01, 10, log=True)),
        ("1e-4:0.5", SearchRange(1e-4, 0.5)),
        ("8:64", SearchRange(8, 64)),
        ("32,64", SearchChoice(32, 64)),
        ("softmax,sparsemax", SearchChoice("softmax", "sparsemax")),
        ("0.5", None),
        ("true", None),
        ("a:b", None),
    ],
)
def test_a_space_is_parsed(text: str, space):
    assert parse_space(text) == space
    if space is not None:
        assert parse_space(str(space)) == space


@pytest.mark.parametrize("text", ["3:3", "5:1", "0:1:log"])
def test_an_empty_space_is_refused(text: str):
    with pytest.raises(UserError, match="bound"):
        parse_space(text)


@pytest.mark.parametrize("name", TECHNIQUES)
def test_every_technique_has_a_valid_space_that_contains_its_defaults(name: str):
    config = TuneConfig(data="sst2", technique=name)
    spaces = search_spaces(config)
    assert spaces
    assert default_values(config, spaces) is not None
