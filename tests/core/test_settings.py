"""Settings check themselves, are dealt out by name, and are read from `--set`."""

import dataclasses
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadygaze.core.errors import UserError
from steadygaze.core.settings import (
    LARGEST,
    Field,
    build,
    descriptions,
    distribute_settings,
    field_names,
    non_default,
    parse,
    settings,
)
from steadygaze.estimator.model_config import ModelConfig
from steadygaze.estimator.train_config import TextConfig
from steadygaze.models.classifier import Architecture
from steadygaze.techniques import TECHNIQUES
from steadygaze.training.optimizers import Training


@settings
class Soup:
    """A settings class of ours alone."""

    salt: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Share of salt."""
    spoons: int = 3
    """How many eat."""
    kind: Literal["thick", "thin"] = "thin"


@settings
class Bread:
    slices: int
    toasted: bool = False


def test_the_text_under_a_field_is_its_description():
    described = descriptions(Soup)
    assert described["salt"] == "Share of salt."
    assert "kind" not in described


@pytest.mark.parametrize("cls", [Architecture, Training, TextConfig, *TECHNIQUES.values()])
def test_every_setting_that_a_user_may_change_has_a_description(cls):
    described = descriptions(cls)
    for name in field_names(cls):
        assert described[name].endswith((".", ")")), name


def test_settings_are_frozen_and_given_by_name():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Soup().salt = 1.0
    with pytest.raises(Exception, match="positional"):
        Soup(0.5)


def test_build_checks_names_types_and_ranges():
    assert build(Soup, {"salt": 0.1, "spoons": "4"}) == Soup(salt=0.1, spoons=4)
    for values, sentence in [
        ({"slat": 1}, "unknown setting 'slat': did you mean 'salt'?  Known: kind, salt, spoons."),
        ({"salt": 2}, "setting 'salt': found 2; it should be less than or equal to 1."),
        ({"spoons": 1.5}, "setting 'spoons': found 1.5; it should be a valid integer"),
        ({"spoons": 2**80}, "setting 'spoons': found 1208925819614629174706176; it should be less than or equal to"),
        ({"kind": "thck"}, "setting 'kind': found 'thck'; it should be 'thick' or 'thin'."),
        ({"spoons": "x" * 1000}, "setting 'spoons': found 'xxx"),
    ]:
        with pytest.raises(UserError) as caught:
            build(Soup, values)
        assert str(caught.value).startswith(sentence)
        assert len(str(caught.value)) < 250


def test_what_has_no_default_is_missed_by_name():
    with pytest.raises(UserError, match=r"^setting 'slices' is missing\.$"):
        build(Bread, {})
    with pytest.raises(UserError, match=r"^setting 'classes' is missing\.$"):
        build(ModelConfig, {})


def test_deal_gives_every_key_to_its_owner():
    assert distribute_settings({"salt": 0.2, "slices": 4}, Soup, Bread) == [Soup(salt=0.2), Bread(slices=4)]
    with pytest.raises(UserError, match="unknown setting 'toast': did you mean 'toasted'"):
        distribute_settings({"toast": True, "slices": 1}, Soup, Bread)


def test_changed_keeps_what_is_not_the_default():
    assert non_default(Soup, {"salt": 0.5, "spoons": 4}) == {"spoons": 4}
    assert non_default(Bread, {"slices": 2, "toasted": False}) == {"slices": 2}
    assert non_default(Soup, {"pepper": 1}) == {"pepper": 1}


@given(
    st.builds(
        Soup, salt=st.floats(0, 1), spoons=st.integers(max_value=LARGEST), kind=st.sampled_from(["thick", "thin"])
    )
)
def test_what_is_changed_builds_the_same_again(soup):
    assert build(Soup, non_default(Soup, dataclasses.asdict(soup))) == soup


def test_parse_reads_json_where_it_can_and_words_otherwise():
    options = ["hidden=64", "rate = 1e-4", "attention= sparsemax ", "amsgrad=true", "none=null", "a=b=c", "empty="]
    assert parse(options) == {
        "hidden": 64,
        "rate": 1e-4,
        "attention": "sparsemax",
        "amsgrad": True,
        "none": None,
        "a": "b=c",
        "empty": "",
    }


@pytest.mark.parametrize("pair", ["hidden", "=64", " =64", ""])
def test_parse_refuses_what_is_no_pair(pair):
    with pytest.raises(UserError, match=r"--set takes key=value, found .* for example: --set hidden=64"):
        parse([pair])


@given(st.text())
def test_parse_evaluates_nothing_and_never_fails_on_a_value(value):
    assert list(parse([f"key={value}"])) == ["key"]


def test_a_number_of_more_digits_than_python_reads_stays_a_word():
    assert parse(["key=" + "9" * 5000]) == {"key": "9" * 5000}


def test_a_limit_of_a_field_is_not_replaced_by_the_general_one() -> None:
    @settings
    class Limited:
        few: Annotated[int, Field(ge=1, le=5)] = 1
        many: int = 1

    assert build(Limited, {"few": 5, "many": LARGEST})
    for wrong, limit in (({"few": 6}, "5"), ({"few": 0}, "1"), ({"many": LARGEST + 1}, str(LARGEST))):
        with pytest.raises(UserError, match=f"equal to {limit}"):
            build(Limited, wrong)
