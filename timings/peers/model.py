"""A MiniLM fine-tuned on SST-2 as a Hugging Face folder: the classifier that the timing `peers` explains."""

import tempfile
from pathlib import Path

from studies.default_explainer.models import examples, fine_tune

FOLDER = Path(tempfile.gettempdir()) / "steadygaze-peers" / "minilm-sst2"


def sst2(split: str, count: int | None = None) -> list[tuple[str, str]]:
    """(text, label), in the order of the corpus."""
    return [(example.text, str(example.label)) for example in examples("sst2", split)[:count]]


def fine_tuned_folder(folder: Path = FOLDER, texts: int = 800) -> Path:
    """The folder, trained first where it is not there: one epoch, about a minute of CPU."""
    if not (folder / "model.safetensors").exists():
        fine_tune("sst2", folder, "cpu", epochs=1, texts=texts, rate=1e-4)
    return folder
