"""Explainers of a user's own module: names, settings, refused models, workers, keys of cells."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import steadygaze as sg
from estimator.tiny import TEXTS, fitted
from printed_pages import DOCS, blocks
from steadygaze.cli.shared_options import import_modules
from steadygaze.core.errors import UserError
from steadygaze.explainers import EXPLAINERS, own_explainers
from steadygaze.study.cells import ComparisonJob
from steadygaze.study.code_version import explainer_source

PAGE = DOCS / "how-to/own-explainer.md"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module of the page, imported; its explainer is forgotten at the end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(EXPLAINERS, "data", {**EXPLAINERS.data})
    sys.modules.pop("my_explainers", None)  # the commands of a page may have imported it
    Path("my_explainers.py").write_text(blocks(PAGE.read_text(encoding="utf-8"), "python")[0], encoding="utf-8")
    import_modules(["my_explainers"])
    yield sys.modules["my_explainers"]
    sys.modules.pop("my_explainers")


def test_an_explainer_of_a_module_has_a_name_and_settings(module):
    by_name = sg.explain(fitted(), TEXTS[0], explainer="attention-norm", settings={"power": 0.0})
    attention = sg.explain(fitted(), TEXTS[0], explainer="attention")
    np.testing.assert_allclose(by_name.weights, attention.weights, rtol=1e-6)
    by_object = sg.explain(fitted(), TEXTS[0], explainer=module.AttentionNorm())
    assert by_object.explainer == "attention-norm"
    assert not np.allclose(by_object.weights, attention.weights)


def test_a_model_without_a_required_property_is_refused_with_the_reason(module):
    def black_box(texts):
        return [[0.4, 0.6]] * len(texts)

    with pytest.raises(UserError, match="does not accept other attention weights"):
        sg.explain(black_box, "a fine text", explainer="attention-norm", classes=["no", "yes"])


def test_workers_register_the_explainer_and_cells_depend_on_its_file(module):
    job = ComparisonJob(None, None, None, "cpu", own_explainers=own_explainers(["attention-norm", "lime"]))
    assert list(job.own_explainers) == ["attention-norm"]
    del EXPLAINERS["attention-norm"]
    job.register()
    assert EXPLAINERS["attention-norm"] is module.AttentionNorm
    assert len(explainer_source("attention-norm")["explainer_source"]) == 16
    assert explainer_source("lime") == {}


def test_rows_of_explain_are_not_resumed_with_another_file_of_the_explainer(module):
    from steadygaze.cli.explain_command import _explainer_digest

    first = _explainer_digest("attention-norm")
    path = Path("my_explainers.py")
    path.write_text(path.read_text(encoding="utf-8").replace("** self.power", "* self.power"), encoding="utf-8")
    del sys.modules["my_explainers"]
    import_modules(["my_explainers"])
    assert _explainer_digest("attention-norm") != first
    assert _explainer_digest("lime") == _explainer_digest(None) == {"fitted": None}


def test_an_unknown_explainer_names_the_way_to_an_own_one():
    with pytest.raises(UserError, match="--import MODULE"):
        sg.explain(fitted(), TEXTS[0], explainer="attention-norms")
    with pytest.raises(UserError, match=r"extends steadygaze\.explainers\.explainer\.Explainer"):
        sg.explain(fitted(), TEXTS[0], explainer=print)
