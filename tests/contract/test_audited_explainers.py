"""What an audit promises of every explainer but the random baseline: a verdict of every property, on its numbers."""

import captum.attr
import pytest

import steadygaze as sg
from estimator.tiny import LABELS, TEXTS, fitted
from opinions import CLASSES, QUICK, lexicon, texts
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.captum import Captum
from steadygaze.explainers.explainer import missing_capability
from steadygaze.explainers.gradient import Gradient
from steadygaze.properties import PROPERTIES
from steadygaze.properties.audit_case import RANDOM
from steadygaze.results.report import Report

RATED = [item.name for item in PROPERTIES.values() if item.rule is not None]


def rated(report: Report) -> list[str]:
    """The explainers with verdicts, each checked."""
    of = {row.signature: row.settings.get("explainer") for row in report.rows}
    for name, verdicts in report.verdicts_by.items():
        assert [verdict.key for verdict in verdicts] == RATED
        assert {of[signature] for verdict in verdicts for signature in verdict.rows} == {name}
    assert report.recommendation is not None
    assert sorted(tally.explainer for tally in report.recommendation.ranking) == sorted(report.verdicts_by)
    assert all(name in report.to_html() for name in report.verdicts_by)
    return list(report.verdicts_by)


@pytest.mark.slow
def test_every_registered_explainer_and_every_object_has_verdicts() -> None:
    model = fitted()
    able = [name for name, kind in EXPLAINERS.items() if not missing_capability(kind(), model.stored_.model)]
    named = [name for name in able if name != "gradient"]
    objects = [Gradient(), Captum(captum.attr.FeatureAblation)]
    report = sg.audit(model, TEXTS, LABELS, explainers=[*named, *objects], sample=4)
    assert rated(report) == [*(name for name in named if name != RANDOM), "gradient", "FeatureAblation"]


@pytest.mark.slow
@pytest.mark.usefixtures("short_probe_training")
def test_an_explainer_that_was_fitted_has_verdicts_beside_others() -> None:
    explainer = sg.fit_explainer(lexicon, texts(), k=2, classes=CLASSES, settings=QUICK)
    report = sg.audit(explainer.black_box, texts(24, seed=3), explainers=["leave-one-out", explainer], sample=2)
    assert rated(report) == ["leave-one-out", "l2x"]
