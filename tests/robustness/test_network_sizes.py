"""Configurations that describe a network of another size than the weights: refused before it is built."""

import json
from pathlib import Path
from typing import Any

import pytest

import steadygaze as sg
from robustness.conftest import run
from robustness.damage import Damage, changed, content
from robustness.harness import assert_clean

EXPLAIN = ["explain", "{}/bert", "a good film"]


def described(architecture: str, **values: Any) -> Damage:
    """Another architecture, as small as the weights but for some values; `...` leaves a key out."""
    small = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 8}
    more = {"vocab_size": 21, "max_position_embeddings": 40, "id2label": {"0": "a", "1": "b"}}
    name = f"{architecture}ForSequenceClassification"
    kind = {"model_type": architecture.lower(), "architectures": [name]}
    written = {key: value for key, value in {**small, **more, **kind, **values}.items() if value is not ...}
    return content(json.dumps(written).encode())


NAMES = [str(i) for i in range(200_000)]
LARGE: dict[str, Damage] = {
    "feed-forward": described("MobileBert", num_feedforward_networks=10**6),
    "inner-group": described("Albert", inner_group_num=10**6, embedding_size=8),
    "block-sizes": described("Funnel", num_hidden_layers=..., block_sizes=[10**6], d_model=8, n_head=2, d_head=4,
        d_inner=8),
    "languages": described("Xmod", languages=NAMES, pad_token_id=1),
    "languages-fewer": described("Xmod", languages=NAMES[:60_000], pad_token_id=1),
    "hash-functions": described("Canine", hidden_size=10**6, num_hash_functions=10**6, num_hash_buckets=1),
    "experts": described("Mixtral", num_hidden_layers=1000, num_local_experts=1000, num_key_value_heads=2),
    "layers": described("Bert", num_hidden_layers=1000),
    "labels": described("Bert", id2label={name: name for name in NAMES}),
    "labels-fewer": described("Bert", id2label={name: name for name in NAMES[:60_000]}),
    "labels-number": described("Bert", id2label=..., num_labels=10**6),
    "positions": described("DistilBert", dim=8, n_heads=2, n_layers=1, hidden_dim=8, sinusoidal_pos_embds=True,
        max_position_embeddings=3 * 10**7),
}  # fmt: skip


@pytest.mark.sweep(keep=("feed-forward", "layers", "experts"))
@pytest.mark.parametrize("damage", LARGE)
def test_a_network_of_many_parts_is_refused_within_seconds(damage: str, place: Path) -> None:
    """Whatever an architecture calls the number of its parts."""
    LARGE[damage](place / "bert" / "config.json")
    result = run(place, *EXPLAIN, limit=20)
    assert_clean(result, codes={2})
    assert "config.json" in result.err
    assert "report" not in result.err


def test_parts_of_a_saved_model_are_counted_too(place: Path) -> None:
    """config.json of steadygaze holds the configuration of a pre-trained encoder."""
    encoder = f"transformer:{place / 'encoder'}"
    sg.TextClassifier(encoder, epochs=1, device="cpu").fit(["a good film", "a bad film"] * 20, [1, 0] * 20).save(
        place / "saved"
    )
    file = place / "saved" / "config.json"
    values = json.loads(file.read_text())
    values["network"] |= {"model_type": "albert", "inner_group_num": 10**6, "embedding_size": 8}
    file.write_text(json.dumps(values))
    result = run(place, "predict", "{}/saved", "a good film", limit=20)
    assert_clean(result, codes={2})
    assert "modules and parameters" in result.err


def test_a_tensor_of_another_shape_is_named(place: Path) -> None:
    changed(intermediate_size=24)(place / "bert" / "config.json")
    result = run(place, *EXPLAIN)
    assert_clean(result, codes={2})
    assert "intermediate.dense" in result.err
    assert "config.json describes (24" in result.err
