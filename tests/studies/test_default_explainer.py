"""The default explainer is what the rule of the study chooses from its records."""

from pathlib import Path
from typing import Any

import pytest

from steadygaze.explainers.resolve_explainer import DEFAULT_SETTINGS, default_explainer
from steadygaze.models.classifier import Classifier
from steadygaze.models.inference import Model
from studies.default_explainer.run import CANDIDATES
from studies.default_explainer.table import LOADERS, all_tables, attention_stays, decision, qualities
from studies.tables import read_records

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def records() -> Any:
    return read_records([ROOT / "studies" / "records" / "default_explainer.jsonl.gz"])


class Network(Model):
    capabilities = frozenset({"embeddings", "attention"})


class BlackBox(Model):
    capabilities = frozenset()


def test_the_defaults_are_those_of_the_rule(records: Any) -> None:
    chosen = {loader: CANDIDATES[decision(records, loader)] for loader in LOADERS}
    name = default_explainer(Network)
    assert chosen["Hugging Face encoder"] == (name, DEFAULT_SETTINGS[name])
    assert chosen["function"][0] == default_explainer(BlackBox) == default_explainer(BlackBox, pair=True)
    assert chosen["TextClassifier"][0] == default_explainer(Classifier, pair=True)


def test_attention_of_a_classifier_of_single_texts_is_not_the_choice_of_the_rule(records: Any) -> None:
    assert not attention_stays(records)
    assert default_explainer(Classifier) == "attention"


@pytest.mark.slow
def test_the_csv_file_of_the_page_is_that_of_the_records(records: Any) -> None:
    page = ROOT / "docs" / "methods" / "default-explainer.md"
    assert all_tables(records) == page.with_suffix(".csv").read_text(encoding="utf-8")
    assert "(default-explainer.csv)" in page.read_text(encoding="utf-8")


def test_quality_is_the_mean_share_of_the_way_from_random_to_the_best_signed_explainer() -> None:
    """(0.3 − 0.1) / (0.5 − 0.1) = 0.5 and (0.2 − 0.2) / (0.4 − 0.2) = 0; attention is no best, though it is above."""
    group = {
        "random": {"comprehensiveness": [0.1], "shapley": [0.0, 0.4]},
        "attention": {"comprehensiveness": [0.9], "shapley": [0.2, 0.2]},
        "input-x-gradient": {"comprehensiveness": [0.3], "shapley": [0.2, 0.2]},
        "lime, 250 samples": {"comprehensiveness": [0.5], "shapley": [0.4, 0.4]},
    }
    quality = qualities(group)
    assert quality["random"] == 0
    assert quality["input-x-gradient"] == pytest.approx(0.25)
    assert quality["lime, 250 samples"] == pytest.approx(1)
    assert quality["attention"] == pytest.approx((2.0 + 0.0) / 2)
