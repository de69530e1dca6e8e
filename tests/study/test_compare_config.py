"""What is refused before anything is read, and what a comparison writes down of itself."""

import re

import pytest

from steadygaze.core.errors import UserError
from steadygaze.core.settings import build
from steadygaze.study.compare_config import CompareConfig, check
from steadygaze.study.study_data import explainers, identity, load_study_data, own, shared
from study.tiny import config_with

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
def test_an_impossible_comparison_is_an_error_of_one_sentence(case):
    changes, hint = BAD[case]
    with pytest.raises(UserError, match=hint) as refused:
        check(config_with(**changes))
    assert not re.search(r"\n", str(refused.value))


@pytest.mark.parametrize(("name", "value"), [("seeds", 0), ("limit", -1), ("seed", -1)])
def test_numbers_out_of_range_are_named(name, value):
    with pytest.raises(UserError, match=f"'{name}': found {value}"):
        build(CompareConfig, {"data": "sst2", "techniques": ("vanilla", "seat"), name: value})


def test_settings_are_dealt_to_all_or_to_one():
    config = config_with(
        settings={"hidden": 4, "dropout": 0.25}, settings_for={"word-at": {"epsilon": 0.125, "hidden": 6}}
    )
    assert config.training("vanilla").architecture.hidden == 4
    assert config.training("word-at").architecture.hidden == 6
    assert (shared(config)["dropout"], "hidden" in shared(config)) == (0.25, False)
    assert own(config, "word-at")["epsilon"] == 0.125
    assert (own(config, "vanilla"), own(config, "word-at")["hidden"]) == ({"hidden": 4}, 6)


def test_each_model_is_explained_by_its_own_explainer_or_all_by_the_same():
    mixed = {"techniques": ("vanilla", "a2r")}
    for changes, message in (
        ({}, "attention"),
        (mixed, "attention of vanilla, rationale of a2r"),
        ({"techniques": ("rnp", "hardkuma")}, "rationale"),
        ({**mixed, "explainer": "gradient"}, "gradient"),
    ):
        config = config_with(**changes)
        check(config)
        assert explainers(config) == message
        assert identity(config, load_study_data(config), "cpu")["audit"]["explainer"] == message


def test_a_setting_that_all_techniques_have_is_for_all():
    config = config_with(techniques=("seat", "anchored"), settings={"k": 3})
    check(config)
    assert [config.training(name).technique.k for name in config.techniques] == [3, 3]


def test_seeds_follow_the_first():
    assert config_with(seeds=3, seed=4).numbers == (4, 5, 6)


def test_everything_the_numbers_depend_on_is_written_down(tmp_path):
    usual = config_with()
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
        config = config_with(**{name: value})
        assert (identity(config, load_study_data(config), "cpu") == known) == (name == "rationales"), name
    first = identity(config_with(synonyms=str(table)), load_study_data(usual), "cpu")
    assert str(tmp_path) not in str(first), "no path of this machine"
    table.write_text('{"word": "good", "synonyms": ["nice"]}\n')
    assert identity(config_with(synonyms=str(table)), load_study_data(usual), "cpu") != first
