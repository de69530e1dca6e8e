"""Words that a masked language model puts in the place of each word, so that a changed text reads like others.

Each word is masked alone.  Its replacement is drawn from what the model predicts there, as in input marginalization
(Kim et al., EMNLP 2020, arXiv:2010.13984): of the CANDIDATES whole words with the largest log p + Gumbel noise, the
first other word that the audited model reads as as many tokens.  The noise depends on the text and the seed.  A word
without such a candidate keeps the replacement of probes/other_words.py.

Weights are read from .safetensors files of a local folder; nothing is downloaded, and no code of the folder runs.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from steadygaze.adapters.huggingface import longest
from steadygaze.core.errors import UserError
from steadygaze.core.ragged import TokenizedTexts
from steadygaze.core.types import Span
from steadygaze.core.untrusted_files import digest_file
from steadygaze.data.subword_tokenizer import load_subword_tokenizer, text_limit
from steadygaze.data.text_tokenizer import Tokens
from steadygaze.models.encoders.pretrained import load_network, weight_files

CANDIDATES, BATCH = 8, 64
LONGEST = 256
"""Subword tokens of a text that the language model reads; words beyond them are not filled."""
MASKS = ("[MASK]", "<mask>")
CONTINUES, BEGINS = "##", ("Ġ", "▁")
"""Marks of tokens within a word (WordPiece), and of tokens that begin one (BPE, Unigram)."""


class MaskFiller:
    """A masked language model."""

    def __init__(self, folder: Path, device: str | torch.device = "cpu") -> None:
        from transformers import AutoModelForMaskedLM

        network, missing = load_network(folder, AutoModelForMaskedLM, "masked language model")
        if missing:
            raise UserError(f"{folder} has no weights for {missing[0]}: it is not a masked language model")
        self._network = network.to(device).eval()
        self._device = device
        width = min(LONGEST, longest(network.config))
        tokenizer = load_subword_tokenizer(folder, max_length=width)
        self._tokenizer = load_subword_tokenizer(folder, max_length=text_limit(width, sum(tokenizer.special_counts)))
        self._words = whole_words(tokenizer.vocabulary)
        mask = next((name for name in MASKS if name in tokenizer.vocabulary), None)
        if mask is None:
            raise UserError(f"the tokenizer of {folder} has no mask token ({' or '.join(MASKS)})")
        self._mask = tokenizer.vocabulary.index(mask)
        digests = [digest_file(file) for file in weight_files(folder)]
        self.digest = hashlib.sha256("".join(digests).encode()).hexdigest()[:12]
        """Identifies the weights."""

    def fill(self, texts: Sequence[str], placed: TokenizedTexts, tokens: Tokens, seed: int) -> NDArray[np.int64]:
        """The id of each token of the texts with its word replaced, by `tokens`; −1: not replaced.  (M,)"""
        filled = np.full(len(placed.ragged.ids), -1, np.int64)
        for row, text in enumerate(texts):
            spans = word_spans(placed.spans[row], placed.groups[row])
            start, end = placed.ragged.starts[row : row + 2]
            ids, words = placed.ragged.ids[start:end], np.flatnonzero(placed.ragged.words[start:end])
            for word, options in enumerate(self._options(text, spans, seed)):
                own = words[np.asarray(placed.groups[row]) == word]
                replaced = _accepted(text, spans[word], options, tokens, ids, own)
                if replaced is not None:
                    filled[start + own] = replaced
        return filled

    def _options(self, text: str, spans: Sequence[Span], seed: int) -> Iterator[list[str]]:
        """Candidates for each word, the best first."""
        place = self._tokenizer.place([text])
        ids, leading = place.ragged.ids.astype(np.int64), self._tokenizer.special_counts[0]
        covered = [
            [leading + i for i, (first, last) in enumerate(place.spans[0]) if first < end and last > begin]
            for begin, end in spans
        ]
        masked = [np.delete(ids, tokens[1:]) if tokens else ids for tokens in covered]
        for words, tokens in zip(masked, covered, strict=True):
            words[tokens[:1]] = self._mask
        digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
        random = np.random.default_rng([seed, int.from_bytes(digest[:8])])
        for start in range(0, len(masked), BATCH):
            part = slice(start, start + BATCH)
            scores = self._log_probs(masked[part], [tokens[0] if tokens else 0 for tokens in covered[part]])
            scores = scores + random.gumbel(size=scores.shape)
            for tokens, row in zip(covered[part], scores, strict=True):
                best: list[int] = np.argsort(-row)[:CANDIDATES].tolist() if tokens else []
                yield [self._words[index] for index in best if np.isfinite(row[index])]

    @torch.no_grad()
    def _log_probs(self, rows: Sequence[NDArray[np.int64]], places: Sequence[int]) -> NDArray[np.float64]:
        """Log-probability of each token at one place of each row; −∞ for parts of words.  (K,V)"""
        width = max(map(len, rows))
        ids = torch.full((len(rows), width), self._tokenizer.pad_id)
        present = torch.zeros(len(rows), width, dtype=torch.long)
        for line, row in enumerate(rows):
            ids[line, : len(row)], present[line, : len(row)] = torch.from_numpy(row), 1
        logits: Any = self._network(input_ids=ids.to(self._device), attention_mask=present.to(self._device)).logits
        chosen = logits[torch.arange(len(rows)), torch.tensor(places)].double().log_softmax(-1).cpu().numpy()
        partial = np.array([not word for word in self._words])
        result: NDArray[np.float64] = chosen[:, : len(partial)]
        result[:, partial] = -np.inf
        return result


def whole_words(vocabulary: Sequence[str]) -> list[str]:
    """The word of each token; empty for parts of words, special tokens and punctuation.

    >>> whole_words(["[MASK]", "film", "##s", "!"]), whole_words(["Ġfilm", "s", "▁le"])
    (['', 'film', '', ''], ['film', '', 'le'])
    """
    marks = any(token.startswith(BEGINS) for token in vocabulary)
    words = [token[1:] if token.startswith(BEGINS) else "" if marks else token for token in vocabulary]
    return [word if word.isalpha() and not word.startswith(CONTINUES) else "" for word in words]


def word_spans(spans: Sequence[Span], groups: Sequence[int]) -> list[Span]:
    """The span of each word from those of its tokens.

    >>> word_spans([(0, 2), (2, 5), (6, 7)], [0, 0, 1])
    [(0, 5), (6, 7)]
    """
    firsts = [i for i in range(len(groups)) if i == 0 or groups[i] != groups[i - 1]]
    lasts = [*(i - 1 for i in firsts[1:]), len(groups) - 1]
    return [(spans[first][0], spans[last][1]) for first, last in zip(firsts, lasts, strict=True)]


def _accepted(
    text: str,
    span: Span,
    options: Sequence[str],
    tokens: Tokens,
    ids: NDArray[np.integer[Any]],
    own: NDArray[np.integer[Any]],
) -> NDArray[np.integer[Any]] | None:
    """The ids of the first option that changes these tokens of the text, `own`, and no others; None: there is none."""
    begin, end = span
    others = [word for word in options if word.casefold() != text[begin:end].casefold()]
    if not others:
        return None
    placed = tokens.place([text[:begin] + word + text[end:] for word in others]).ragged
    unknown, changed = getattr(tokens, "unknown_id", None), np.zeros(len(ids), np.bool_)
    changed[own] = True
    for row in range(len(others)):
        new = placed.ids[placed.starts[row] : placed.starts[row + 1]]
        if len(new) == len(ids) and np.array_equal(new[~changed], ids[~changed]):
            replaced = new[changed]
            if (replaced != ids[changed]).any() and unknown not in replaced.tolist():
                return replaced
    return None
