"""Correlations of explanations of known truth, and what they do not depend on."""

import pytest
import torch

from steadygaze.adapters.model_synonyms import model_synonyms
from steadygaze.auditing.prepare_case import prepare
from steadygaze.properties.measures.stability_measures import weight_correlation
from steadygaze.properties.protocols.rewording import FLIP, REWORDING_ROWS, rewording
from steadygaze.results.audit_config import ProbeConfig, Runtime
from studies.oracles.explainers import explainers
from studies.oracles.models import adapter
from studies.oracles.worlds import Shape, world

RANDOM, TOP = "weight-correlation/reworded", "weight-correlation/reworded-top"
NAMES = ("exact", "exact × 1000", "exact + 5", "dense", "signed", "constant", "exact for half, else random")


def findings(model: str = "linear", shape: Shape | None = None, names=NAMES, synonyms=None, batch_size: int = 256):
    here, known = world("short", 6, 60, shape), explainers()
    audited = adapter(here, model)
    table = model_synonyms(audited, here.synonyms if synonyms is None else synonyms, [e.text for e in here.examples])
    chosen, runtime = {name: known[name] for name in names}, Runtime(batch_size=batch_size)
    case = prepare(audited, here.examples, chosen, ProbeConfig(), {"3-synonyms": (table, 3)}, runtime).case
    return {(finding.explainer, finding.measure): finding for finding in rewording(case)}


@pytest.mark.parametrize("row", [RANDOM, TOP])
@pytest.mark.parametrize("shape", [Shape(5, 8), Shape(40, 60)], ids=["short", "long"])
def test_exact_weights_stay_and_random_ones_do_not_at_any_length(row, shape):
    found = findings(shape=shape)
    for name in ("exact", "exact × 1000", "exact + 5"):
        assert float(found[name, row].values.nanmean()) > 0.95
    assert abs(float(found["dense", row].values.nanmean())) < 0.2
    assert abs(float(found["signed", row].values.nanmean())) < 0.2


def test_words_whose_synonyms_mean_the_opposite_are_found_by_substituting_the_highlighted_ones():
    found = findings("flipped synonyms", names=("exact",))
    assert float(found["exact", TOP].values.nanmean()) < 0.3
    assert float(found[None, FLIP].values.nanmean()) > 0
    assert not findings(names=("exact",))[None, FLIP].values.nan_to_num().any()


def test_texts_with_too_few_synonyms_are_left_out_and_counted():
    found = findings(names=("exact",), synonyms={"infoaaa": ["infoaab"]})
    values = found["exact", TOP].values
    assert values.isnan().any()
    assert found["exact", TOP].notes[0].fields["left"] == int(values.isnan().sum())


def test_scores_do_not_depend_on_the_batch():
    small, whole = findings(names=("exact", "signed"), batch_size=7), findings(names=("exact", "signed"))
    assert all(torch.allclose(small[key].values, whole[key].values, equal_nan=True) for key in whole)


def test_without_a_table_all_rows_are_missing():
    here = world("short", 6, 5)
    case = prepare(adapter(here, "linear"), here.examples, {}, ProbeConfig()).case
    assert [finding.measure for finding in rewording(case) if finding.absent] == list(REWORDING_ROWS)


def test_even_weights_agree_with_even_weights_alone():
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[3, 2:] = False
    even, other = torch.full((4, 4), 0.3, dtype=torch.float64), torch.tensor([[1.0, 2, 3, 5]] * 4, dtype=torch.float64)
    even[1] += torch.tensor([0, 1e-8, 0, 0])  # rounding
    assert weight_correlation(even, even, mask).tolist()[:3] == [1, 1, 1]
    assert weight_correlation(even, other, mask).tolist()[:3] == [0, 0, 0]
    assert weight_correlation(other, 7 - 2 * other, mask).tolist()[:3] == pytest.approx([-1, -1, -1])
    assert weight_correlation(other, other, mask)[3].isnan()
