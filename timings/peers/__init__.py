"""Agreement and CPU time of our explainers beside Captum, shap, lime, ERASER's definitions and scikit-learn, on MiniLM.

For each pair: the correlation of the weights of words (mean over texts), and the peer's CPU time relative to ours.  The
two alternate, a few texts at a time, in one process.  All methods delete words.  The model is a fine-tuned MiniLM.

shap and lime are compared if they are installed.  Run with OMP_NUM_THREADS=1: CPU time then does not include waiting.
"""

import importlib.util
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from steadygaze.adapters import streaming
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.data.batches import collate
from steadygaze.estimator.explain_request import ExplainRequest
from steadygaze.properties.measures import faithfulness_measures, plausibility_measures
from steadygaze.properties.probes.erasure import SHARES, erase_words
from steadygaze.properties.probes.text_perturbations import observe
from steadygaze.results.explanation import Explanation
from timings.harness import Race, Result, clocked
from timings.peers.by_hand import ByHand, Weights
from timings.peers.model import fine_tuned_folder, sst2

CHUNK = 5
"""Texts of one call of our explainer."""
Marks = NDArray[np.bool_]
SAMPLES = 1000
"""Default samples of LIME and KernelSHAP."""


@dataclass
class Row:
    """One comparison: our explanations of a few texts, and the peer's of one."""

    name: str
    peer: str
    ours: Callable[[list[int]], list[Weights]]
    theirs: Callable[[int], Weights]
    needs: str = ""
    per_text: bool = True
    """False: one number for each text, correlated over texts."""
    times: Race = field(default_factory=Race)
    pairs: list[tuple[Weights, Weights]] = field(default_factory=list)

    def step(self, rows: list[int], first: bool) -> None:
        """Explain these texts with both; `first`: ours first."""
        own: list[Weights] = []
        other: list[Weights] = []
        for which in (0, 1) if first else (1, 0):
            if which == 0:
                wall, cpu, own = clocked(lambda: self.ours(rows))
            else:
                wall, cpu, other = clocked(lambda: [self.theirs(row) for row in rows])
            self.times.add(("ours", self.peer)[which], wall, cpu)
        self.pairs += zip(own, other, strict=True)

    def results(self) -> list[Result]:
        """The correlation, and the peer's time over ours."""
        ratio = self.times.ratio(self.peer, "ours", clock="cpu")
        total = sum(self.times.cpu[self.peer]) / sum(self.times.cpu["ours"])
        return [
            Result(f"{self.name}: correlation with {self.peer}", self.correlation),
            replace(ratio, name=f"{self.name}: {ratio.name}"),
            Result(f"{self.name}: {self.peer} / ours, CPU time of all texts", total, "×"),
        ]

    @property
    def correlation(self) -> float:
        if not self.per_text:
            return _pearson(*(np.array([pair[i] for pair in self.pairs]).reshape(-1) for i in (0, 1)))
        correlations = [_pearson(weights, other) for weights, other in self.pairs if len(weights) > 2]
        return float(np.nanmean(correlations))


def _pearson(weights: Weights, other: Weights) -> float:
    return float(np.corrcoef(weights, other)[0, 1]) if weights.std() > 0 and other.std() > 0 else float("nan")


class Bench:
    def __init__(self, texts: Sequence[str], samples: int = SAMPLES) -> None:
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        folder = fine_tuned_folder()
        network = AutoModelForSequenceClassification.from_pretrained(folder)
        self.hand = ByHand(network, AutoTokenizer.from_pretrained(folder))
        self.subject: ModelAdapter = as_adapter(folder, device="cpu")
        self.texts, self.samples = list(texts), samples
        self.explanations = self.explain(self.texts, "leave-one-out")

    def explain(self, texts: list[str], name: str, **settings: Any) -> list[Explanation]:
        explanations = streaming.explain(self.subject, iter([texts]), ExplainRequest(None, name, settings=settings))
        return [explanation for explanation in explanations if explanation is not None]

    def explainer(self, name: str, **settings: Any) -> Callable[[list[int]], list[Weights]]:
        def ours(rows: list[int]) -> list[Weights]:
            chunk = [self.texts[row] for row in rows]
            return [np.array(explanation.weights) for explanation in self.explain(chunk, name, **settings)]

        return ours

    def by_hand(self, method: Callable[..., Weights], *arguments: Any) -> Callable[[int], Weights]:
        def theirs(row: int) -> Weights:
            self.hand.read(self.texts[row])
            return method(*arguments)

        return theirs

    def lime(self, row: int) -> Weights:
        self.hand.read(self.texts[row])
        return self.hand.lime_text(self.texts[row], self.explanations[row].tokens, self.samples)

    def our_eraser(self, rows: list[int]) -> list[Weights]:
        """Comprehensiveness of the leave-one-out weights."""
        tokens, model = self.subject.tokens, self.subject.model
        data = self.subject.data(tokens.place([self.texts[row] for row in rows]), None)
        batch = collate(data, np.arange(len(rows)))
        weights = torch.zeros(batch.ids.shape, dtype=torch.float64)
        for i, row in enumerate(rows):
            firsts = torch.nonzero(batch.mask[i] if batch.word_starts is None else batch.word_starts[i]).flatten()
            weights[i, firsts] = torch.tensor(self.explanations[row].weights, dtype=torch.float64)
        full = observe(model, batch).probs
        without, _ = erase_words(model, batch, full, weights)
        return [np.array([value]) for value in faithfulness_measures.comprehensiveness(full, without).tolist()]

    def their_eraser(self, row: int) -> Weights:
        self.hand.read(self.texts[row])
        return np.array([self.hand.eraser(np.array(self.explanations[row].weights), SHARES)[0]])

    def weights_and_marks(self, row: int) -> tuple[Weights, Marks]:
        """Weights of a text, and random marks instead of an annotator's."""
        weights = np.array(self.explanations[row].weights)
        marks = np.random.default_rng(row).random(len(weights)) < 0.3
        marks[np.random.default_rng(row).integers(len(weights))] = True
        return weights, marks

    def our_rank(self, measure: Callable[..., torch.Tensor]) -> Callable[[list[int]], list[Weights]]:
        def ours(rows: list[int]) -> list[Weights]:
            both = [self.weights_and_marks(row) for row in rows]
            width = max(len(weights) for weights, _ in both)
            wide = [[np.pad(values, (0, width - len(values))) for values in pair] for pair in both]
            pad = [torch.from_numpy(np.array([pair[i] for pair in wide])) for i in (0, 1)]
            mask = torch.arange(width) < torch.tensor([[len(weights)] for weights, _ in both])
            return [np.array([value]) for value in measure(*pad, mask).tolist()]

        return ours

    def their_rank(self, score: Callable[[Marks, Weights], float]) -> Callable[[int], Weights]:
        def theirs(row: int) -> Weights:
            weights, marks = self.weights_and_marks(row)
            return np.array([score(marks, weights)])

        return theirs

    def rows(self) -> Iterator[Row]:
        hand = self.hand
        for name, method in {
            "gradient": hand.gradient,
            "input-x-gradient": hand.input_x_gradient,
            "integrated-gradients": hand.integrated_gradients,
            "leave-one-out": hand.feature_ablation,
        }.items():
            yield Row(name, f"captum {method.__name__}", self.explainer(name), self.by_hand(method))
        lime, shap = (self.explainer(name, samples=self.samples) for name in ("lime", "kernel-shap"))
        yield Row("lime", "captum Lime", lime, self.by_hand(hand.captum_lime, self.samples))
        yield Row("lime", "lime", lime, self.lime, needs="lime")
        yield Row("kernel-shap", "captum KernelShap", shap, self.by_hand(hand.captum_kernel_shap, self.samples))
        yield Row("kernel-shap", "shap", shap, self.by_hand(hand.shap_kernel, self.samples), needs="shap")
        yield Row("comprehensiveness", "ERASER, by definition", self.our_eraser, self.their_eraser, per_text=False)
        for name, measure, peer in (
            ("average-precision", plausibility_measures.average_precision, average_precision),
            ("auprc", plausibility_measures.auprc, auprc),
        ):
            yield Row(name, "scikit-learn", self.our_rank(measure), self.their_rank(peer), per_text=False)


def average_precision(marks: Marks, weights: Weights) -> float:
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(marks, weights))


def auprc(marks: Marks, weights: Weights) -> float:
    from sklearn.metrics import auc, precision_recall_curve

    precision, recall, _ = precision_recall_curve(marks, weights)
    return float(auc(recall, precision))


def run(*, texts: int = 100, only: str = "", samples: int = SAMPLES) -> list[Result]:
    """`only`: a regular expression over "explainer, peer"."""
    bench = Bench([text for text, _ in sst2("test", texts)], samples)
    rows = [row for row in bench.rows() if re.search(only, f"{row.name}, {row.peer}")]
    results = []
    for row in rows:
        if row.needs and importlib.util.find_spec(row.needs) is None:
            continue
        row.ours([0])  # imports and first calls are not timed
        row.theirs(0)
        for number, start in enumerate(range(0, len(bench.texts), CHUNK)):
            row.step(list(range(start, min(start + CHUNK, len(bench.texts)))), number % 2 == 0)
        results += row.results()
    return results
