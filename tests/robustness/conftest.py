"""Models, explainers, bundles and tables to damage: made once, copied for each case."""

import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from adapters import folders
from estimator.tiny import LABELS, TEXTS, fitted, transformer_folder
from robustness.harness import Result, run_case
from robustness.small import Small, small


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """model/, bert/ (a classifier), encoder/ (without a head), and tables."""
    place = tmp_path_factory.mktemp("template")
    fitted().save(place / "model")
    folders.save("bert", place / "bert")
    transformer_folder(place / "encoder")
    rows = [f'"{text}",{label}' for text, label in zip(TEXTS, LABELS, strict=True)]
    (place / "films.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    (place / "words.jsonl").write_text('{"word": "good", "synonyms": ["fine"]}\n')
    (place / "policy.toml").write_text('[[require]]\nmeasure = "accuracy"\nat_least = 0.1\n')
    return place


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """A small model and its data, which no test changes."""
    return small(tmp_path_factory.mktemp("small"))


@pytest.fixture
def place(template: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    shutil.copytree(template, tmp_path / "place", symlinks=True)
    return tmp_path / "place"


def shard(folder: Path, names: dict[str, str]) -> None:
    """A model in several files with an index; `names`: files of tensors with another name."""
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    parts = {name: f"model-{i % 2}.safetensors" for i, name in enumerate(sorted(weights))}
    for part in set(parts.values()):
        save_file({name: weights[name] for name in parts if parts[name] == part}, folder / part, {"format": "pt"})
    first = min(parts)
    listed = {**parts, **{first: names.get("first", parts[first])}}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": listed}))


def run(place: Path, *arguments: object, **options: object) -> Result:
    """A command whose words may name files of `place` with {}."""
    inputs = [str(argument).replace("{}", str(place)) for argument in arguments]
    return run_case([*inputs, "--device", "cpu"], watch=place, **options)  # type: ignore[arg-type]
