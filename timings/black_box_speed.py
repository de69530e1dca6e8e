"""Time and memory of explanations of a black box: a fitted selector, LIME, and the effects that CXPlain learns from.

selector   explanations of a fitted L2X / forward passes of the black box, same batches; counts of passes
lime       LIME with one text per forward pass / with batches; the largest difference of the weights
cxplain    peak memory of the effects of removing every word, for n and for 4 n texts
"""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch

import steadygaze as sg
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.text_explainer import TextExplainer
from steadygaze.data.batches import by_length, collate
from steadygaze.explainers import class_probability
from steadygaze.explainers.learned.removal_effects import removal_effects, text_removal
from steadygaze.explainers.learned.text_inputs import vocabulary
from steadygaze.explainers.lime import Lime
from steadygaze.models.inference import inference
from timings.harness import Result, in_child, peak_memory, race

TEXTS, LIME_TEXTS, LIME_SAMPLES, CXPLAIN_TEXTS = 512, 4, 200, 128


def black_box() -> tuple[sg.TextClassifier, list[str]]:
    """A bilstm of the default size.  Its cost does not depend on its weights."""
    examples = sg.load_corpus(f"planted-reviews:sizes=[{TEXTS},64,64]").splits["train"]
    texts = [example.text for example in examples]
    clf = sg.TextClassifier(epochs=1, verbose=False, device="cpu")
    return clf.fit(texts, [example.label for example in examples]), texts


def measure_selector(clf: sg.TextClassifier, texts: list[str], rounds: int) -> list[Result]:
    fitted = sg.fit_explainer(clf, texts, "l2x", k=5, settings={"epochs": 1}, device="cpu")
    assert isinstance(fitted, TextExplainer)
    subject, explainer = fitted.black_box, fitted.explainer
    data = subject.data(subject.tokens.place(texts), None)
    batches = [collate(data, rows) for rows in by_length(data, 128)]
    parts = {"black box": subject.model, **dict(fitted.learned.networks.items())}
    passes = dict.fromkeys(parts, 0)

    def count(name: str) -> Callable[..., None]:
        def increment(*_: Any) -> None:
            passes[name] += 1

        return increment

    hooks = [part.register_forward_hook(count(name)) for name, part in parts.items()]
    explainer.explain(subject.model, batches[0])
    for hook in hooks:
        hook.remove()

    def bare() -> None:
        with inference(subject.model):
            for batch in batches:
                subject.model(batch)

    def explain() -> None:
        for batch in batches:
            explainer.explain(subject.model, batch)

    times = race({"explanations of L2X": explain, "black box's own passes": bare}, rounds)
    counts = [Result(f"passes of {name} for one batch", number) for name, number in passes.items()]
    return [*counts, times.ratio(*times.wall)]


def measure_lime(clf: sg.TextClassifier, texts: list[str], rounds: int) -> list[Result]:
    subject, explainer = as_adapter(clf, device="cpu"), Lime(samples=LIME_SAMPLES)
    batch = collate(subject.data(subject.tokens.place(texts[:LIME_TEXTS]), None), torch.arange(LIME_TEXTS).numpy())

    def together() -> torch.Tensor:
        return explainer.explain(subject.model, batch).weights

    def one_by_one() -> torch.Tensor:
        with patch.dict(class_probability.TOKENS, {"cpu": 1}):
            return together()

    difference = float((together() - one_by_one()).abs().max())
    times = race({"LIME, one text per pass": one_by_one, "LIME, batches": together}, rounds)
    return [times.ratio(*times.wall), Result("largest difference of LIME's weights", difference)]


def cxplain_memory(times: int) -> tuple[int, float]:
    """Remove every word of every text once: the number of removals, and peak memory."""
    clf, texts = black_box()
    read = (texts * times)[: CXPLAIN_TEXTS * times]
    subject = as_adapter(clf, device="cpu")
    data, tokens = subject.data(subject.tokens.place(read), None), subject.tokens
    table = vocabulary(data, tokens.vocabulary, tokens.kind).table(tokens.vocabulary)
    probs = torch.full((len(read), len(subject.classes)), 1 / len(subject.classes))
    removal = text_removal(subject.model, data, table)
    effects = removal_effects(removal, probs, torch.zeros(len(read), dtype=torch.long))
    return len(effects.values), peak_memory()


def run(*, rounds: int = 7) -> list[Result]:
    """On the CPU."""
    clf, texts = black_box()
    results = measure_selector(clf, texts, rounds) + measure_lime(clf, texts, rounds)
    for times in (1, 4):
        removals, memory = in_child(cxplain_memory, times)
        results.append(Result(f"peak memory of CXPlain, {removals:,} removals", memory, "MiB"))
    return results
