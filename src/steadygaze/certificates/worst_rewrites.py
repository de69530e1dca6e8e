"""The rewrite of a text that changes its label most, without evaluation of all rewrites.

In the encoders `average` and `cnn`, a hidden state h_t depends on few words: on x_t, or on x_{t−3} … x_{t+3}.  With
softmax attention and a linear decoder, the log-odds of two classes A and B are a ratio of two sums over the words:

    z_A − z_B  =  Σ_t e^{s_t} m_t  /  Σ_t e^{s_t}         s_t: score of word t        m_t = (θ_A − θ_B)·h_t + b_A − b_B

s_t and m_t are functions of the same window of words.  So the log-odds exceed λ in every rewrite if

    min over rewrites of  Σ_t e^{s_t} (m_t − λ)  >  0      (core/maths/window_minimum.py: exact, by dynamic programming)

and the smallest log-odds are found in a few steps (Dinkelbach 1967): λ becomes the log-odds of the minimizing rewrite
until none is lower.  This evaluates every distinct window once, not every rewrite.

    top-k words     certified if the lowest score of the top-k words, over all windows, exceeds the highest other score
    weight of t     at most e^{max s_t} / (e^{max s_t} + Σ_{u≠t} e^{min s_u}), and at least this with max for min

The bounds of top-k words and weights choose every window separately: they hold, but they are not the tightest.

Related work: interval bound propagation over word substitutions (Jia et al. 2019, arXiv:1909.00986; Huang et al. 2019,
arXiv:1909.01492) bounds every layer separately.  Here no bound of the label is lost.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.certificates.rewrites import TextPositions
from steadygaze.core.maths.window_minimum import Floats, window_minimum
from steadygaze.core.types import Batch, Encoded
from steadygaze.data.batches import collate
from steadygaze.models import inference
from steadygaze.models.attention_layers import Softmax, Uniform
from steadygaze.models.classifier import Classifier

ROWS = 1 << 13
"""Windows that are evaluated together."""


@dataclass(frozen=True)
class WorstRewrites:
    """Bounds over all rewrites of a text, and the rewrites that reach the lowest log-odds."""

    label: int
    """The class with the highest probability for the text itself."""
    log_odds: Floats
    """(C,) the lowest log-odds of the label against each class over all rewrites; infinite for the label itself."""
    choices: NDArray[np.int64]
    """(M,P) the option of each position in the worst rewrites."""
    scores: Floats
    """(L,) the score of each word of the text."""
    lowest_scores: Floats
    """(L,) over all rewrites."""
    highest_scores: Floats

    @property
    def probability(self) -> float:
        """Lower bound of the probability of the label."""
        return float(1 / (1 + np.exp(-self.log_odds).sum()))

    @property
    def margin(self) -> float:
        """Lower bound of the probability of the label minus that of any other class."""
        return float(self.probability * -np.expm1(-self.log_odds.min()))

    @property
    def weights(self) -> Floats:
        """(L,) the weight of each word of the text."""
        weights = np.exp(self.scores - self.scores.max())
        return np.asarray(weights / weights.sum(), np.float64)

    def weight_bounds(self) -> tuple[Floats, Floats]:
        """Lowest and highest weight of each word.  (L,), (L,)"""
        top = self.highest_scores.max()
        low, high = np.exp(self.lowest_scores - top), np.exp(self.highest_scores - top)
        return low / (low + high.sum() - high), high / (high + low.sum() - low)

    def top_k_margin(self, top: NDArray[np.bool_]) -> float:
        """Lower bound of the lowest weight of the words `top` (L,) minus the highest other weight."""
        if top.all() or not top.any():
            return np.inf
        gap = self.lowest_scores[top].min() - self.highest_scores[~top].max()
        return float(self.weight_bounds()[0][top].min() * -np.expm1(-gap)) if gap > 0 else -np.inf


def has_local_states(adapter: ModelAdapter) -> bool:
    """True if the worst rewrites can be searched: see above."""
    model = adapter.model
    return (
        isinstance(model, Classifier)
        and model.encoder.context is not None
        and model.has_linear_decoder
        and isinstance(model.attention, Softmax | Uniform)
    )


class WorstRewriteSearch:
    """Finds the worst rewrites of texts for a classifier whose hidden states depend on few words."""

    def __init__(
        self,
        adapter: ModelAdapter,
        texts: Sequence[str],
        questions: Sequence[str] | None,
        changes: int | None,
        most_passes: int,
    ) -> None:
        """`changes`: most substitutions; `most_passes`: a text may cost as much as this many forward passes."""
        self._adapter, self._texts, self._questions = adapter, texts, questions
        self._changes, self._most_passes = changes, most_passes

    def __call__(self, row: int, positions: TextPositions, options: Sequence[Sequence[int]]) -> WorstRewrites | None:
        """`options`: the ids of each position, that of the text first.  None: too many windows, or no words."""
        adapter = self._adapter
        placed = adapter.tokens.place([self._texts[row]])
        data = adapter.data(placed, None if self._questions is None else [self._questions[row]])
        batch = collate(data, np.zeros(1, np.int64)).to(adapter.model.device)
        ids: list[Sequence[int]] = [[int(index)] for index in batch.ids[0]]
        words = np.flatnonzero(placed.ragged.words)
        token_of = {start: int(token) for token, (start, _) in zip(words, placed.spans[0], strict=True)}
        tokens = [token_of.get(start) for start in positions.starts]  # None: truncated
        for token, alternatives in zip(tokens, options, strict=True):
            if token is not None:
                ids[token] = alternatives
        windows = _Windows(adapter.model, ids, words)
        if not len(words) or windows.count * windows.width > self._most_passes * len(ids):
            return None
        with inference.inference(adapter.model):
            terms = windows.terms(batch)
        return self._worst(terms, tokens)

    def _worst(self, terms: "_Terms", tokens: Sequence[int | None]) -> WorstRewrites:
        origin = [0] * len(terms.scores)
        label = int(terms.logits(origin).argmax())
        log_odds, rows = np.full(terms.classes, np.inf), []
        for other in range(terms.classes):
            if other != label:
                log_odds[other], chosen = terms.lowest_log_odds(label, other, self._changes)
                rows.append([0 if token is None else chosen[token] for token in tokens])
        scores = [score for score in terms.scores if np.isfinite(score).all()]
        first, low, high = (np.array([f(score) for score in scores]) for f in (lambda s: s.flat[0], np.min, np.max))
        return WorstRewrites(label, log_odds, np.array(rows, np.int64), first, low, high)


@dataclass(frozen=True)
class _Terms:
    """For each token, arrays over the choices in its window."""

    scores: list[Floats]
    """s; −∞ for a token without attention, such as the start of a text."""
    logits_by_token: list[Floats]
    """The logits if all attention was on the token; the last axis is the class."""

    @property
    def classes(self) -> int:
        return int(self.logits_by_token[0].shape[-1])

    def lowest_log_odds(self, label: int, other: int, changes: int | None) -> tuple[float, list[int]]:
        """The lowest log-odds over all rewrites, and the options of the tokens that reach it."""
        margins = [logits[..., label] - logits[..., other] for logits in self.logits_by_token]
        highest = max(score.max() for score in self.scores)
        weights = [np.exp(score - highest) for score in self.scores]
        chosen = [0] * len(weights)
        lowest = self._log_odds(chosen, label, other)
        while True:
            costs = [weight * (margin - lowest) for weight, margin in zip(weights, margins, strict=True)]
            _, candidate = window_minimum(costs, changes)
            value = self._log_odds(candidate, label, other)
            if value >= lowest:
                return lowest, chosen
            lowest, chosen = value, candidate

    def _log_odds(self, chosen: Sequence[int], label: int, other: int) -> float:
        logits = self.logits(chosen)
        return float(logits[label] - logits[other])

    def logits(self, chosen: Sequence[int]) -> Floats:
        """The logits of a rewrite.  (C,)"""
        side = (self.scores[0].ndim - 1) // 2
        padded = [*[0] * side, *chosen, *[0] * side]
        windows = [tuple(padded[t : t + 2 * side + 1]) for t in range(len(chosen))]
        scores = np.array([score[window] for score, window in zip(self.scores, windows, strict=True)])
        logits = np.stack([values[window] for values, window in zip(self.logits_by_token, windows, strict=True)])
        weights = np.exp(scores - scores.max())
        return np.asarray(weights @ logits / weights.sum(), np.float64)


class _Windows:
    """All windows of a text: each word with its neighbors, in every combination of their options."""

    def __init__(self, model: Any, ids: Sequence[Sequence[int]], words: NDArray[np.int64]) -> None:
        """`ids`: the options of each token; `words`: the tokens with attention."""
        self._model: Classifier = model
        self._words = words
        side = model.encoder.context or 0
        self.width = 2 * side + 1
        self._ids = [*[[0]] * side, *map(list, ids), *[[0]] * side]
        present = np.pad(np.ones(len(ids), np.bool_), side)
        self._present = np.lib.stride_tricks.sliding_window_view(present, self.width)
        sizes = [len(row) for row in self._ids]
        self.shapes = [tuple(sizes[t : t + self.width]) for t in range(len(ids))]

    @property
    def count(self) -> int:
        """Number of windows around words."""
        return sum(int(np.prod(self.shapes[t], dtype=object)) for t in self._words.tolist())

    def terms(self, batch: Batch) -> _Terms:
        """Evaluate all windows; `batch`: the text itself, with its question."""
        model = self._model
        encoded = model.encode(batch)
        bias = model.decode(encoded, torch.zeros_like(batch.mask, dtype=encoded.hidden.dtype))  # (1,C)
        parts = [self._evaluate(ids, present, encoded.question) for ids, present in self._rows(batch.ids.device)]
        scores, logits = (torch.cat(values).double().cpu().numpy() for values in zip(*parts, strict=True))
        logits = logits + bias.double().cpu().numpy()
        score_arrays = [np.full(shape, -np.inf) for shape in self.shapes]
        logit_arrays = [np.zeros((*shape, logits.shape[1])) for shape in self.shapes]
        end = 0
        for t in self._words.tolist():
            start, end = end, end + int(np.prod(self.shapes[t]))
            score_arrays[t] = scores[start:end].reshape(self.shapes[t])
            logit_arrays[t] = logits[start:end].reshape((*self.shapes[t], -1))
        return _Terms(score_arrays, logit_arrays)

    def _rows(self, device: torch.device) -> Iterator[tuple[Tensor, Tensor]]:
        """(M,width) ids and presence of all windows, in parts."""
        ids, present = [], []
        for t in self._words.tolist():
            options = [np.array(row) for row in self._ids[t : t + self.width]]
            grid = np.indices(self.shapes[t]).reshape(self.width, -1)
            ids.append(np.stack([row[choice] for row, choice in zip(options, grid, strict=True)], 1))
            present.append(np.broadcast_to(self._present[t], ids[-1].shape))
        rows = [torch.split(torch.from_numpy(np.concatenate(values)).to(device), ROWS) for values in (ids, present)]
        return zip(*rows, strict=True)

    def _evaluate(self, ids: Tensor, present: Tensor, question: Tensor | None) -> tuple[Tensor, Tensor]:
        """Score and logits of the word in the middle.  (M,width) -> (M,), (M,C)"""
        model, middle = self._model, self.width // 2
        hidden = model.encoder(model.encoder.embed(ids), present).hidden[:, middle : middle + 1]
        encoded = Encoded(hidden, None if question is None else question.expand(len(hidden), -1))
        reach = model.reach(encoded)
        assert reach is not None  # the decoder is linear
        scores = model.score(encoded)
        scores = torch.zeros_like(scores) if isinstance(model.attention, Uniform) else scores
        return scores[:, 0], reach[:, 0]
