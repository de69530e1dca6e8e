"""Time and memory of explanations of a black box: a fitted selector, LIME, and the effects that CXPlain learns from.

    python bench/black_box_speed.py [--rounds 7]

Times are medians over interleaved rounds on the CPU.

    selector   explanations of a fitted L2X / forward passes of the black box, same batches; counts of passes
    lime       LIME with one text per forward pass / with batches; the largest difference of the weights
    cxplain    peak memory of the effects of removing every word, for n and for 4 n texts
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch

import steadygaze as sg
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.data.batches import by_length, collate
from steadygaze.explainers import class_probability
from steadygaze.explainers.learned.removal_effects import removal_effects, text_removal
from steadygaze.explainers.learned.text_inputs import vocabulary
from steadygaze.explainers.lime import Lime
from steadygaze.models.inference import inference

TEXTS, LIME_TEXTS, LIME_SAMPLES = 512, 4, 200


def black_box() -> tuple[sg.TextClassifier, list[str]]:
    """A bilstm of the default size.  Its cost does not depend on its weights."""
    examples = sg.load_corpus("planted-reviews:sizes=[512,64,64]").splits["train"]
    texts = [example.text for example in examples]
    clf = sg.TextClassifier(epochs=1, verbose=False, device="cpu")
    return clf.fit(texts, [example.label for example in examples]), texts


def seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def ratio(work: Callable[[], Any], other: Callable[[], Any], rounds: int) -> str:
    work(), other()
    ratios = [seconds(work) / seconds(other) for _ in range(rounds)]
    return f"{statistics.median(ratios):.2f} (from {min(ratios):.2f} to {max(ratios):.2f})"


def measure_selector(clf: sg.TextClassifier, texts: list[str], rounds: int) -> None:
    fitted = sg.fit_explainer(clf, texts, "l2x", k=5, settings={"epochs": 1}, device="cpu")
    subject, explainer = fitted.black_box, fitted.explainer
    data = subject.data(subject.tokens.place(texts), None)
    batches = [collate(data, rows) for rows in by_length(data, 128)]
    passes = dict.fromkeys(("black box", *fitted.learned.networks), 0)

    def count(name: str) -> Callable[..., None]:
        def increment(*_: Any) -> None:
            passes[name] += 1

        return increment

    parts = {"black box": subject.model, **dict(fitted.learned.networks.items())}
    hooks = [part.register_forward_hook(count(name)) for name, part in parts.items()]
    explainer.explain(subject.model, batches[0])
    [hook.remove() for hook in hooks]
    print("selector: passes for one batch:", passes)

    def bare() -> None:
        with inference(subject.model):
            [subject.model(batch) for batch in batches]

    selector_ratio = ratio(lambda: [explainer.explain(subject.model, batch) for batch in batches], bare, rounds)
    print(f"selector: explaining / the black box's own pass: {selector_ratio}, {TEXTS} texts")


def measure_lime(clf: sg.TextClassifier, texts: list[str], rounds: int) -> None:
    subject, explainer = as_adapter(clf, device="cpu"), Lime(samples=LIME_SAMPLES)
    batch = collate(subject.data(subject.tokens.place(texts[:LIME_TEXTS]), None), torch.arange(LIME_TEXTS).numpy())

    def together() -> torch.Tensor:
        return explainer.explain(subject.model, batch).weights

    def one_by_one() -> torch.Tensor:
        with patch.dict(class_probability.TOKENS, {"cpu": 1}):
            return together()

    difference = float((together() - one_by_one()).abs().max())
    times = ratio(one_by_one, together, rounds)
    print(f"lime: one at a time / together: {times}, weights differ by at most {difference:.0e}")


def print_cxplain_memory(clf: sg.TextClassifier, texts: list[str]) -> None:
    """Remove every word of every text once, and print counts and peak memory."""
    subject = as_adapter(clf, device="cpu")
    data = subject.data(subject.tokens.place(texts), None)
    tokens = subject.tokens
    table = vocabulary(data, tokens.vocabulary, tokens.kind).table(tokens.vocabulary)
    probs = torch.full((len(texts), len(subject.classes)), 1 / len(subject.classes))
    effects = removal_effects(
        text_removal(subject.model, data, table), probs, torch.zeros(len(texts), dtype=torch.long)
    )
    print(len(texts), len(effects.values), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cxplain", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    clf, texts = black_box()
    if options.cxplain:
        print_cxplain_memory(clf, (texts * options.cxplain)[: 128 * options.cxplain])
        return
    measure_selector(clf, texts, options.rounds)
    measure_lime(clf, texts, options.rounds)
    for times in (1, 4):
        child = subprocess.run(
            [sys.executable, __file__, "--cxplain", str(times)], capture_output=True, text=True, check=True
        )
        count, removals, memory = child.stdout.split()[-3:]
        print(f"cxplain: {count} texts, {removals} removals of a word, peak memory {memory} MB")


if __name__ == "__main__":
    main()
