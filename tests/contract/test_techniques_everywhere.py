"""Every technique with every encoder, two classes and three, single texts and pairs: finite, blind to its batch.

The texts have special tokens; one has a single word and two have none.
"""

from functools import cache, partial

import pytest
import torch
from torch import Tensor

from contract.test_techniques import COMPARES_EXAMPLES
from contract.tiny import ENCODER_NAMES, VOCABULARY, assert_close, batch, encoder, littered, split, widened
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch, Terms
from steadygaze.data.batches import Data
from steadygaze.models.classifier import Architecture
from steadygaze.models.inference import Model
from steadygaze.perturbations.word_substitution import Synonyms
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.technique import LossContext, Technique

VARIANTS: dict[str, tuple[str, dict[str, object]]] = {
    **{name: (name, {}) for name in TECHNIQUES},
    "attention-iat:word": ("attention-iat", {"variant": "word"}),
    "attention-iat:literal": ("attention-iat", {"variant": "literal"}),
    "attention-iat:released": ("attention-iat", {"variant": "released"}),
    "seat:joint": ("seat", {"variant": "joint", "norm": "l2"}),
    "seat:released": ("seat", {"variant": "released"}),
    "mask-neutral:downstream": ("mask-neutral", {"weigh": "downstream"}),
    "anchored:pgd": ("anchored", {"solver": "pgd", "k": 2}),
    "rnp:straight-through": ("rnp", {"estimator": "straight-through"}),
    "rnp:gumbel": ("rnp", {"estimator": "gumbel", "skewed": 1}),
    "rnp:tokens": ("rnp", {"granularity": "token"}),
    "rnp:windows": ("rnp", {"granularity": "token", "estimator": "gumbel", "spans": 2}),
    "rnp:coins": ("rnp", {"granularity": "token", "estimator": "straight-through", "share": None}),
    "rnp:shared": ("rnp", {"estimator": "gumbel", "shared_encoder": True}),
    "three-player:sentences": ("three-player", {"granularity": "sentence"}),
    "hardkuma:windows": ("hardkuma", {"spans": 2, "sparsity": 1.0, "continuity": 1.0}),
    "a2r:released": ("a2r", {"variant": "released"}),
    "a2r:tokens": ("a2r", {"granularity": "token", "spans": None}),
    "a2r:attention": ("a2r", {"granularity": "token", "variant": "released"}),
    "fresh:gradient": ("fresh", {"saliency": "gradient", "spans": 1}),
    "fresh:product": ("fresh", {"saliency": "input-x-gradient", "spans": None}),
    "fresh:sentences": ("fresh", {"granularity": "sentence", "skewed": 1}),
}
FEW = {"teachers": 2}
ENDS = torch.arange(VOCABULARY) % 4 == 3
"""Words that end a sentence."""

CASES = [
    (name, encoding, pair)
    for name, (kind, _) in VARIANTS.items()
    for encoding in (ENCODER_NAMES if name in TECHNIQUES else ["average", "bilstm", "transformer"])
    for pair in ([False, True] if TECHNIQUES[kind]().reads_pairs else [False])
]
Shape = tuple[str, bool, int]
"""Encoder, pair, classes."""


def technique_of(name: str) -> Technique:
    kind, settings = VARIANTS[name]
    return TECHNIQUES[kind](**settings, **(FEW if kind == "consensus" else {}))


@cache
def model_of(technique: Technique, shape: Shape, seed: int = 0) -> Model:
    encoding, pair, classes = shape
    torch.manual_seed(seed)
    made = technique.build(partial(encoder, encoding, pair), Architecture(), classes, pair, lambda: ENDS)
    return made.double().eval()


def data_of(pair: bool, classes: int) -> Data:
    data = split(pair=pair)
    return Data(data.text, data.question, data.label % classes)


def synonyms() -> Synonyms:
    ids = torch.arange(VOCABULARY)
    table = torch.stack([(ids + 1) % VOCABULARY, (ids + 2) % VOCABULARY], -1).clamp_min(2)
    return Synonyms(table, ids % 3, ids == VOCABULARY - 1)


def read(technique: Technique, shape: Shape, texts: Batch) -> tuple[Terms, dict[str, Tensor]]:
    """The terms, and the gradient of their sum, by parameter."""
    model = model_of(technique, shape)
    others = sorted({stage.model for stage in technique.stages(0)} - {"model"})
    models = {name: model_of(technique, shape, 1 + i) for i, name in enumerate(others)}
    with torch.no_grad():
        memory = technique.cache_targets(models, texts)
    known = synonyms()
    torch.manual_seed(2)
    modules = {name: module.double() for name, module in technique.modules(model).items()}
    prior = torch.arange(1.0, shape[2] + 1).softmax(-1)
    context = LossContext(
        models, modules, RandomKey(1), 0.5, memory, technique.on_epoch_start(model, known), known, prior
    )
    terms = technique.loss(model, texts, context)
    names, parameters = zip(*model.named_parameters(), strict=True)
    result = torch.autograd.grad(sum(terms.values()).sum(), parameters, allow_unused=True)
    return terms, {key: value for key, value in zip(names, result, strict=True) if value is not None}


@pytest.mark.sweep(keep=12)
@pytest.mark.parametrize(("name", "encoding", "pair"), CASES)
@pytest.mark.parametrize("classes", [2, 3])
def test_terms_and_gradients_are_finite_and_no_padding_or_batch_mate_changes_them(
    name: str, encoding: str, pair: bool, classes: int
) -> None:
    technique, shape = technique_of(name), (encoding, pair, classes)
    data = data_of(pair, classes)
    whole, pull = read(technique, shape, batch(data))
    assert all(value.shape == (len(data),) and value.isfinite().all() for value in whole.values())
    assert pull
    assert all(value.isfinite().all() for value in pull.values())
    assert any(value.abs().max() > 0 for value in pull.values())

    assert_close(read(technique, shape, littered(widened(batch(data), 3))), (whole, pull))

    if VARIANTS[name][0] in COMPARES_EXAMPLES:
        return
    parts = [read(technique, shape, batch(data, rows)) for rows in ([4, 1, 0, 6, 3, 5], [2])]
    order = torch.tensor([4, 1, 0, 6, 3, 5, 2])
    for key, values in whole.items():
        assert_close(torch.cat([terms[key] for terms, _ in parts]), values[order])
    for key, value in pull.items():
        assert_close(sum(part[key] for _, part in parts), value)
