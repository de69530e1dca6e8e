"""What is refused before anything is read, and what a comparison writes down of itself."""

import re

import pytest

from steadygaze.core.errors import UserError
from steadygaze.core.settings import build
from steadygaze.study.compare_config import CompareConfig, check
from steadygaze.study.study_data import explainers, identity, load_study_data, own, shared
from study.tiny import order

BAD = {
    "unknown technique": ({"techniques": ("vanilla", "wordat")}, "did you mean 'word-at'"),
    "one technique": ({"techniques": ("vanilla",)}, "needs two techniques or more, found vanilla"),
    "no technique": ({"techniques": ()}, "needs two techniques or more, found none"),
    "twice": ({"techniques": ("seat", "seat")}, "seat is named twice"),
    "unknown explainer": ({"explainer": "attenton"}, "did you mean 'attention'"),
    "no rationale": (
        {"techniques": ("a2r", "vanilla"), "explainer": "rationale"},
        "rationale cannot explain models of vanilla: .* does not select .*; without --explainer each has its default",
    ),
    "no attention": (
        {"techniques": ("vanilla", "a2r"), "explainer": "attention"},
        "attention cannot explain models of a2r: .* has a rationale, not attention; without --explainer",
    ),
    "unknown encoder": ({"encoder": "bilsm"}, "did you mean 'bilstm'"),
    "unknown setting": ({"settings": {"hiden": 3}}, "did you mean 'hidden'"),
    "a setting of one": ({"settings": {"epsilon": 0.1}}, "vanilla has no setting 'epsilon'.*--set-for word-at:epsilon"),
    "a technique that is not compared": ({"settings_for": {"seat": {"k": 3}}}, "unknown technique of this comparison"),
    "a setting that it has not": ({"settings_for": {"word-at": {"teachers": 3}}}, "unknown setting 'teachers'"),
    "out of range": ({"settings_for": {"word-at": {"epsilon": -1}}}, "'epsilon'"),
    "no synonyms": ({"synonyms": "nowhere.jsonl"}, "synonym file nowhere.jsonl does not exist"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_done_is_said_in_a_sentence(case):
    changes, hint = BAD[case]
    with pytest.raises(UserError, match=hint) as refused:
        check(order(**changes))
    assert not re.search(r"\n", str(refused.value))


@pytest.mark.parametrize(("name", "value"), [("seeds", 0), ("limit", -1), ("seed", -1)])
def test_numbers_out_of_range_are_named(name, value):
    with pytest.raises(UserError, match=f"'{name}': found {value}"):
        build(CompareConfig, {"data": "sst2", "techniques": ("vanilla", "seat"), name: value})


def test_settings_are_dealt_to_all_or_to_one():
    asked = order(settings={"hidden": 4, "dropout": 0.25}, settings_for={"word-at": {"epsilon": 0.125, "hidden": 6}})
    assert asked.training("vanilla").architecture.hidden == 4
    assert asked.training("word-at").architecture.hidden == 6
    assert (shared(asked)["dropout"], "hidden" in shared(asked)) == (0.25, False)
    assert own(asked, "word-at")["epsilon"] == 0.125
    assert (own(asked, "vanilla"), own(asked, "word-at")["hidden"]) == ({"hidden": 4}, 6)


def test_models_are_asked_for_what_they_show_or_all_for_one_thing():
    mixed = {"techniques": ("vanilla", "a2r")}
    for changes, said in (
        ({}, "attention"),
        (mixed, "attention of vanilla, rationale of a2r"),
        ({"techniques": ("rnp", "hardkuma")}, "rationale"),
        ({**mixed, "explainer": "gradient"}, "gradient"),
    ):
        asked = order(**changes)
        check(asked)
        assert explainers(asked) == said
        assert identity(asked, load_study_data(asked), "cpu")["audit"]["explainer"] == said


def test_a_setting_that_all_techniques_have_is_for_all():
    asked = order(techniques=("seat", "anchored"), settings={"k": 3})
    check(asked)
    assert [asked.training(name).technique.k for name in asked.techniques] == [3, 3]


def test_seeds_follow_the_first():
    assert order(seeds=3, seed=4).numbers == (4, 5, 6)


def test_everything_the_numbers_depend_on_is_written_down(tmp_path):
    usual = order()
    table = tmp_path / "synonyms.jsonl"
    table.write_text('{"word": "good", "synonyms": ["fine"]}\n')
    changed = {
        "seeds": 2,
        "seed": 1,
        "techniques": ("word-at", "vanilla"),
        "encoder": "cnn",
        "epochs": 2,
        "batch_size": 8,
        "settings": {"hidden": 5},
        "settings_for": {"word-at": {"epsilon": 0.3}},
        "explainer": "random",
        "synonyms": {"good": ["fine"]},
        "split": "validation",
        "limit": 3,
        "data": "planted-reviews:sizes=[60,20,17]",
    }
    known = identity(usual, load_study_data(usual), "cpu")
    for name, value in {**changed, "vectors": "glove-50d", "rationales": None}.items():
        asked = order(**{name: value})
        assert (identity(asked, load_study_data(asked), "cpu") == known) == (name == "rationales"), name
    first = identity(order(synonyms=str(table)), load_study_data(usual), "cpu")
    assert str(tmp_path) not in str(first), "no path of this machine"
    table.write_text('{"word": "good", "synonyms": ["nice"]}\n')
    assert identity(order(synonyms=str(table)), load_study_data(usual), "cpu") != first
