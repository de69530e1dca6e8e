"""Time of training steps on a GPU: the ordinary loop, a CUDA graph, and stacks of models.

All variants train on the same texts in turn, in blocks of steps.

    --part steps        stacks of several sizes, and one model with and without a graph
    --part techniques   every technique, with and without a graph
    --part equal        largest difference of parameters after --block steps, with and without a graph
    --part seeds        25 seeds as a stack and one by one, and consensus: time and macro-F1
"""

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
import torch
from sklearn.metrics import f1_score

from steadygaze.data.batches import Data
from steadygaze.data.corpora import load_corpus
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.models import inference
from steadygaze.models.inference import Model
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.technique import Technique
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.stacked_loop import StackedLoop
from steadygaze.training.stacked_stages import train_loops, why_not_static
from steadygaze.training.technique_loop import TechniqueLoop, TrainingJob
from steadygaze.training.training_run import TrainingRun
from studies.data_folder import data_folder
from timings.harness import Race, Result, clocked, race
from timings.inputs import (
    TECHNIQUE_SETTINGS,
    ordinary_steps,
    stacked_steps,
    synonyms,
    take,
    training_data,
    training_loop,
    word_model,
)

CAPTURE_STEPS = 500
"""Steps until the graphs of all widths are captured."""


@dataclass
class Throughput:
    """A job, and how often its variants are timed."""

    job: TrainingJob
    size: int
    encoder: str
    rounds: int
    block: int

    def loop(self, technique: Technique, seed: int = 0) -> TechniqueLoop:
        return training_loop(technique, self.job, self.size, seed, self.encoder)

    def alternate(self, running: dict[str, Iterator[None]]) -> Race:
        """Blocks of steps of each variant in turn; graphs are captured before."""
        for steps in running.values():
            take(steps, CAPTURE_STEPS)
        return race({name: partial(take, steps, self.block) for name, steps in running.items()}, self.rounds, 0)

    def steps(self, stacks: list[int]) -> list[Result]:
        variants = {"eager": ordinary_steps(self.loop(Vanilla()))}
        for number in stacks:
            stack = StackedLoop([self.loop(Vanilla(), seed) for seed in range(number)])
            variants[f"stack {number}"] = stacked_steps(stack)
        times = self.alternate(variants)
        results = [times.time(name, per=self.block) for name in variants]
        for number in stacks:
            bases = [base for base in ("eager", "stack 1") if base in variants and base != f"stack {number}"]
            ratios = [times.ratio(base, f"stack {number}", times=number) for base in bases]
            results += [replace(ratio, name=f"{ratio.name}, per model") for ratio in ratios]
        return results

    def techniques(self) -> list[Result]:
        results = []
        for name, technique in TECHNIQUE_SETTINGS.items():
            if why_not_static(self.loop(technique)) is not None:
                continue
            graph = stacked_steps(StackedLoop([self.loop(technique)]))
            times = self.alternate({f"{name}, eager": ordinary_steps(self.loop(technique)), f"{name}, graph": graph})
            results += [times.time(variant, per=self.block) for variant in times.wall]
            results.append(times.ratio(*times.wall))
        return results

    def equal(self) -> list[Result]:
        """Kernels that add in random order are switched off first, then on; last, the steps without a graph twice."""
        kinds = {
            "deterministic kernels": (True, (False, True)),
            "all kernels": (False, (False, True)),
            "without graphs": (False, (False, False)),
        }
        results = []
        for name, technique in TECHNIQUE_SETTINGS.items():
            if why_not_static(self.loop(technique)) is not None:
                continue
            for kind, (deterministic, variants) in kinds.items():
                torch.use_deterministic_algorithms(deterministic, warn_only=True)
                stacks = [StackedLoop([self.loop(technique)], graphs) for graphs in variants]
                for stack in stacks:
                    take(stacked_steps(stack), self.block)
                pairs = zip(*(stack.models[0].parameters() for stack in stacks), strict=True)
                results.append(Result(f"{name}, {kind}", max(float((a - b).abs().max()) for a, b in pairs)))
        return results

    def seeds(self, number: int) -> list[Result]:
        """Time and test macro-F1 of many seeds, and of consensus, on SST-2."""
        splits = load_corpus("sst2", data_dir=data_folder("sst2")).splits
        texts = {name: [example.text for example in split] for name, split in splits.items()}
        tokenizer = build_word_tokenizer(texts["train"], min_df=1, max_length=512)
        labels = {name: np.array([e.label == "positive" for e in split], np.int64) for name, split in splits.items()}
        data = {name: Data(tokenizer.encode(texts[name]), None, labels[name]) for name in texts}
        sst2 = {"train": data["train"], "validation": data["validation"], "training": Training(), "synonyms": None}
        job = replace(self.job, **sst2)  # type: ignore[arg-type]

        def train(stacks: bool, groups: list[range]) -> list[Model]:
            own = replace(job, stacks=stacks)
            loops = [[training_loop(Vanilla(), own, tokenizer.size, seed, self.encoder) for seed in g] for g in groups]
            for group in loops:
                train_loops(group)
            return [loop.state.model for group in loops for loop in group]

        def consensus(stacks: bool) -> list[Model]:
            make = partial(word_model, tokenizer.size, self.encoder)
            return [TrainingRun(TECHNIQUES["consensus"](), make, replace(job, stacks=stacks)).execute()]

        def macro_f1(model: Model) -> float:
            predicted = inference.logits(model.to(job.accelerator.device), data["test"]).argmax(-1)
            return float(f1_score(labels["test"], predicted, average="macro"))

        one_each = [range(seed, seed + 1) for seed in range(number)]
        runs: dict[str, Callable[[], list[Model]]] = {
            "vanilla, eager": lambda: train(False, one_each[:1]),
            f"{number} seeds as a stack": lambda: train(True, [range(number)]),
            f"{number} seeds one by one, graph": lambda: train(True, one_each),
            "3 seeds one by one, eager": lambda: train(False, one_each[:3]),
            "consensus, stacked teachers": lambda: consensus(True),
            "consensus, eager": lambda: consensus(False),
        }
        train(True, [range(2)])  # loads all code
        results = []
        for name, work in runs.items():
            seconds, _, models = clocked(work)
            scores = [macro_f1(model) for model in models]
            results += [Result(name, seconds, "s"), Result(f"{name}, mean macro-F1", statistics.mean(scores))]
            if len(scores) > 1:
                results.append(Result(f"{name}, deviation of macro-F1", statistics.stdev(scores)))
        return results


def run(
    *,
    part: Literal["steps", "techniques", "equal", "seeds"] = "steps",
    seeds: int = 25,
    stacks: str = "1,5,8,32",
    rounds: int = 10,
    block: int = 40,
    encoder: str = "bilstm",
    device: str = "cuda",
) -> list[Result]:
    """`block`: steps of one variant in a row."""
    data, size = training_data()
    with accelerator(device, "no") as accelerate:
        table = synonyms(size).to(accelerate.device)
        job = TrainingJob(data, data, Training(epochs=1000), accelerate, SilentWatcher(), table)
        measure = Throughput(job, size, encoder, rounds, block)
        parts: dict[str, Callable[[], list[Result]]] = {
            "steps": lambda: measure.steps([int(number) for number in stacks.split(",")]),
            "techniques": measure.techniques,
            "equal": measure.equal,
            "seeds": lambda: measure.seeds(seeds),
        }
        return parts[part]()
