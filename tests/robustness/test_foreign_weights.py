"""Weights of Hugging Face folders: read from the listed files, which lie in the folder or in the cache of the hub."""

from pathlib import Path

import pytest
import torch

import steadygaze as sg
from robustness.conftest import shard
from steadygaze.models.encoders.pretrained import inside, load_network, weight_files


def test_weights_in_several_files_are_read(place: Path) -> None:
    from transformers import AutoModelForSequenceClassification

    before, _ = load_network(place / "bert", AutoModelForSequenceClassification, "classifier")
    shard(place / "bert", {})
    assert [file.name for file in weight_files(place / "bert")] == ["model-0.safetensors", "model-1.safetensors"]
    after, missing = load_network(place / "bert", AutoModelForSequenceClassification, "classifier")
    assert missing == []
    assert all(torch.equal(value, after.state_dict()[name]) for name, value in before.state_dict().items())


def test_links_of_the_hubs_own_cache_are_followed_and_no_others(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = place / "hub"
    repository = cache / "models--a--b"
    (repository / "blobs").mkdir(parents=True)
    snapshot = repository / "snapshots" / "1f"
    snapshot.mkdir(parents=True)
    (repository / "blobs" / "0a").write_bytes(b"")
    (snapshot / "model.safetensors").symlink_to("../../blobs/0a")
    (snapshot / "other.safetensors").symlink_to("../../../../films.csv")
    with pytest.raises(sg.UserError, match="outside of the folder"):
        inside(snapshot, "model.safetensors")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    assert inside(snapshot, "model.safetensors").exists()
    with pytest.raises(sg.UserError, match="outside of the folder"):
        inside(snapshot, "other.safetensors")
