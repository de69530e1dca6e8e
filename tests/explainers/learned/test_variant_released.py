"""Variant released: texts of one length, the padding in front, which can be selected."""

import pytest
import torch

from opinions import CLASSES, QUICK, lexicon, texts
from steadygaze.adapters.fit_explainer import fit_explainer
from steadygaze.core.errors import UserError
from steadygaze.core.types import Batch
from steadygaze.explainers.learned.l2x import L2X
from steadygaze.explainers.learned.text_inputs import Vocabulary

RELEASED = {"k": 2, "variant": "released", "length": 4}
TOKENS = ["", "?", "good", "bad"]


def batch() -> Batch:
    """Two texts, of two and of five words."""
    ids = torch.tensor([[2, 3, 0, 0, 0], [3, 2, 3, 2, 2]])
    return Batch(ids, ids != 0, ids != 0, index=torch.arange(2))


def test_texts_are_padded_or_cut_in_front_and_padding_can_be_selected() -> None:
    table = Vocabulary(("", "[UNK]", "good", "bad"), "words").table(
        ["", "?", "good", "bad"], L2X(**RELEASED).padded_length
    )
    views = table.views(batch(), torch.empty(2, 0))
    assert views.x.tolist() == [[4, 4, 2, 3], [2, 3, 2, 2]], "4 is padding, a word of its own"
    assert views.selectable.all()
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4]])
    expected = torch.tensor([[0.3, 0.4, 0, 0, 0], [0, 0.1, 0.2, 0.3, 0.4]])
    assert torch.equal(views.token_weights(weights), expected)


def test_usually_only_words_can_be_selected() -> None:
    table = Vocabulary(("", "[UNK]", "good", "bad"), "words").table(TOKENS, L2X().padded_length)
    assert table.views(batch(), torch.empty(2, 0)).selectable.tolist() == [
        [True, True, False, False, False],
        [True] * 5,
    ]


@pytest.mark.usefixtures("short_probe_training")
def test_it_can_be_fitted_and_explains() -> None:
    settings = {**QUICK, "epochs": 1, "variant": "released", "length": 30}
    fitted = fit_explainer(lexicon, texts(40), k=2, mitigation="mask-neutral", classes=CLASSES, settings=settings)
    assert fitted.learned.networks["selector"].vectors.num_embeddings == len(fitted.learned.vocabulary.words) + 1
    assert sum(weight > 0 for weight in fitted.explain(texts(1)[0]).weights) <= 2


def test_settings_of_the_released_variant_are_refused_elsewhere() -> None:
    with pytest.raises(UserError, match="'length' is for variant=released"):
        fit_explainer(lexicon, texts(40), classes=CLASSES, settings={"length": 30})
    with pytest.raises(UserError, match="is for models that read words"):
        Vocabulary(("", "[UNK]", "good"), "pieces").table(["", "good", "##ly"], L2X(**RELEASED).padded_length)
