"""States of words in their contexts by a local encoder, to compare a word with its substitute.

The state of a word is the mean of the last hidden states of its subword tokens.  Equal contexts are encoded once.
Weights are read from .safetensors files of a local folder; nothing is downloaded, and no code of the folder runs.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cosine_similarity

from steadygaze.core.types import OnProgress
from steadygaze.core.untrusted_files import digest_file
from steadygaze.data.context_filter import Context
from steadygaze.data.subword_tokenizer import load_subword_tokenizer, text_limit
from steadygaze.models.encoders.pretrained import weight_files
from steadygaze.models.encoders.transformer import from_folder, limit

BATCH = 64
LONGEST = 128
"""Subword tokens of a context; a word beyond them has similarity 0."""
CHUNK = 1 << 11
"""Contexts whose states are in memory at once, and between two reports of progress."""
ACTIVITY = "comparing words in their contexts"
Place = tuple[str, int, int]
"""A text, and the span of a word in it."""


class WordStates:
    """An encoder that compares words with their substitutes."""

    def __init__(self, folder: Path, device: str | torch.device = "cpu", on_progress: OnProgress | None = None) -> None:
        self._encoder = from_folder(folder).to(device).eval()
        self._device = device
        self._on_progress = on_progress or (lambda *_: None)
        longest = min(LONGEST, limit(self._encoder.config))
        tokenizer = load_subword_tokenizer(folder, max_length=longest)
        self._tokenizer = load_subword_tokenizer(folder, max_length=text_limit(longest, sum(tokenizer.special_counts)))
        digests = [digest_file(file) for file in weight_files(folder)]
        self.digest = hashlib.sha256("".join(digests).encode()).hexdigest()
        """Identifies the weights."""

    def similarity(self, contexts: Sequence[Context]) -> NDArray[np.float64]:
        """The cosine of the states of each word and of its substitute; 0 for a word that was cut off."""
        parts = [np.zeros(0)]
        for start in range(0, len(contexts), CHUNK):
            self._on_progress(ACTIVITY, start, len(contexts))
            parts.append(self._chunk(contexts[start : start + CHUNK]))
        self._on_progress(ACTIVITY, len(contexts), len(contexts))
        return np.concatenate(parts)

    def _chunk(self, contexts: Sequence[Context]) -> NDArray[np.float64]:
        before = [(text, start, end) for text, start, end, _ in contexts]
        after = [
            (text[:start] + substitute + text[end:], start, start + len(substitute))
            for text, start, end, substitute in contexts
        ]
        places = list(dict.fromkeys([*before, *after]))
        states = self._states(places)
        row = {place: index for index, place in enumerate(places)}
        first, second = (states[[row[place] for place in side]] for side in (before, after))
        return cosine_similarity(first, second, dim=-1).numpy()

    @torch.no_grad()
    def _states(self, places: Sequence[Place]) -> Tensor:
        """(N,H) the state of each word, in double precision; 0 for a word that was cut off."""
        tokenized = self._tokenizer.place([text for text, _, _ in places])
        ragged, leading = tokenized.ragged, self._tokenizer.special_counts[0]
        states = torch.zeros(len(places), self._encoder.size, dtype=torch.float64)
        for rows in np.array_split(np.argsort(ragged.lengths, kind="stable"), max(1, -(-len(places) // BATCH))):
            lengths = torch.from_numpy(ragged.lengths[rows])
            present = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
            ids = torch.full(present.shape, self._tokenizer.pad_id)
            ids[present] = torch.from_numpy(ragged.ids[ragged.indices(rows)]).long()
            marked = torch.zeros_like(present)
            for line, row in enumerate(rows.tolist()):
                _, start, end = places[row]
                for index, (first, last) in enumerate(tokenized.spans[row]):
                    marked[line, leading + index] = first < end and last > start
            ids, present = ids.to(self._device), present.to(self._device)
            hidden = self._encoder(self._encoder.embed(ids), present).hidden.double().cpu()
            weights = marked.double()
            total = torch.einsum("bt,bth->bh", weights, hidden)
            states[torch.from_numpy(rows)] = total / weights.sum(-1, keepdim=True).clamp_min(1.0)
        return states
