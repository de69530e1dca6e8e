"""Steps per second of training on a GPU: the ordinary loop, a CUDA graph, and stacks of models.

All variants train on the same texts in turn, in blocks of steps.  A ratio is the median over the blocks.

    python bench/throughput.py steps [--stacks 1,5,8,32] [--rounds 10] [--block 40]
    python bench/throughput.py techniques          every technique, with and without a graph
    python bench/throughput.py equal               parameters after --block steps, with and without a graph
    python bench/throughput.py seeds               25 seeds as a stack and one by one, and consensus: time and macro-F1
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np
import torch
from sklearn.metrics import f1_score

from data_folder import data_folder
from steadygaze.data.batches import Data
from steadygaze.data.corpora import load_corpus
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.models import inference
from steadygaze.models.classifier import Architecture, Classifier, word_encoder
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.technique import Technique
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.stacked_loop import StackedLoop
from steadygaze.training.stacked_stages import train_loops, why_not_static
from steadygaze.training.technique_loop import TechniqueLoop, TrainingJob
from steadygaze.training.training_run import RESULT, TrainingRun, freeze
from technique_step import SETTINGS, synonyms
from train_step import corpus

SHAPE = Architecture(hidden=128, dimension=100)


def word_model(encoder: str, size: int) -> Classifier:
    return Classifier(word_encoder(encoder, SHAPE, size, pair=False), SHAPE, classes=2, pair=False)


def loop_of(technique: Technique, job: TrainingJob, size: int, seed: int, encoder: str) -> TechniqueLoop:
    """A technique in its last stage, ready to train."""
    make = partial(word_model, encoder, size)
    torch.manual_seed(seed)
    run = TrainingRun(technique, make, job, seed)
    names = {stage.model for stage in technique.stages(seed)} - {RESULT}
    run.models = {name: freeze(make().to(job.accelerator.device)) for name in sorted(names)}
    stage = technique.stages(seed)[-1]
    return run._loop(0, stage, run._begin(stage, (seed, 0)))


def ordinary_steps(loop: TechniqueLoop) -> Iterator[None]:
    """One step of the ordinary loop at a time."""
    for _ in count():
        loop.start_epoch()
        for rows in loop.batches():
            yield loop.train_batch(rows)  # type: ignore[misc]
        loop.state.epoch += 1


def stacked_steps(stack: StackedLoop) -> Iterator[None]:
    """One step of the stack at a time."""
    for _ in count():
        for widths in stack._start_epoch():
            yield stack.run_step(widths)
        for loop in stack.loops:
            loop.state.step += len(stack.rows)


def seconds_per_step(steps: Iterator[None], block: int) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(block):
        next(steps)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / block


def alternate(variants: dict[str, Callable[[], Iterator[None]]], rounds: int, block: int) -> dict[str, list[float]]:
    """Seconds per step of each variant, in each round; graphs are captured before."""
    running = {name: make() for name, make in variants.items()}
    for name, steps in running.items():
        seconds_per_step(steps, 20 if name == "eager" else 500)
    seconds: dict[str, list[float]] = {name: [] for name in running}
    for _ in range(rounds):
        for name, steps in running.items():
            seconds[name].append(seconds_per_step(steps, block))
    return seconds


def measure_steps(job: TrainingJob, size: int, arguments: argparse.Namespace) -> None:
    def loops(number: int) -> list[TechniqueLoop]:
        return [loop_of(Vanilla(), job, size, seed, arguments.encoder) for seed in range(number)]

    variants: dict[str, Callable[[], Iterator[None]]] = {"eager": lambda: ordinary_steps(loops(1)[0])}
    for number in map(int, arguments.stacks.split(",")):
        variants[f"stack {number}"] = lambda number=number: stacked_steps(StackedLoop(loops(number)))  # type: ignore[misc]
    seconds = alternate(variants, arguments.rounds, arguments.block)
    graph = seconds.get("stack 1", seconds["eager"])
    print("variant      ms/step  per model   × eager   × graph of one model")
    for name, times in seconds.items():
        models = int(name.split()[1]) if " " in name else 1
        eager, single = (
            statistics.median(a / b * models for a, b in zip(base, times, strict=True))
            for base in (seconds["eager"], graph)
        )
        typical = 1000 * statistics.median(times)
        print(f"{name:10} {typical:9.3f} {typical / models:10.3f} {eager:9.1f} {single:9.2f}", flush=True)


def measure_techniques(job: TrainingJob, size: int, arguments: argparse.Namespace) -> None:
    print("technique        eager ms   graph ms   eager / graph   × vanilla eager, graph")
    rows: dict[str, tuple[float, float]] = {}
    for name, technique in SETTINGS.items():
        if (reason := why_not_static(loop_of(technique, job, size, 0, arguments.encoder))) is not None:
            print(f"{name:14} no graph: {reason}")
            continue
        variants: dict[str, Callable[[], Iterator[None]]] = {
            "eager": lambda technique=technique: ordinary_steps(loop_of(technique, job, size, 0, arguments.encoder)),  # type: ignore[misc]
            "graph": lambda technique=technique: stacked_steps(
                StackedLoop([loop_of(technique, job, size, 0, arguments.encoder)])
            ),  # type: ignore[misc]
        }
        seconds = alternate(variants, arguments.rounds, arguments.block)
        rows[name] = eager, graph = tuple(1000 * statistics.median(times) for times in seconds.values())  # type: ignore[assignment]
        ratios = (value / vanilla for value, vanilla in zip((eager, graph), rows["vanilla"], strict=True))
        print(
            f"{name:14} {eager:9.2f} {graph:9.2f} {eager / graph:10.1f}   ", *map("{:6.2f}".format, ratios), flush=True
        )


def measure_difference(job: TrainingJob, size: int, arguments: argparse.Namespace) -> None:
    """Print how far parameters differ after some steps with and without a graph.

    The step is the same.  Kernels that add in random order are switched off first, then on.  The last column repeats
    the steps without a graph.
    """
    for name, technique in SETTINGS.items():
        if why_not_static(loop_of(technique, job, size, 0, arguments.encoder)) is not None:
            continue
        columns = []
        for deterministic, variants in ((True, (False, True)), (False, (False, True)), (False, (False, False))):
            torch.use_deterministic_algorithms(deterministic, warn_only=True)
            models = []
            for graphs in variants:
                stack = StackedLoop([loop_of(technique, job, size, 0, arguments.encoder)], graphs)
                steps = stacked_steps(stack)
                for _ in range(arguments.block):
                    next(steps)
                models.append(stack.models[0])
            pairs = zip(*(model.parameters() for model in models), strict=True)
            columns.append(max(float((a - b).abs().max()) for a, b in pairs))
        print(f"{name:14}", *map("{:.1e}".format, columns), flush=True)


def measure_seeds(job: TrainingJob, size: int, arguments: argparse.Namespace) -> None:
    """Time and test macro-F1 of many seeds, and of consensus, on SST-2."""
    corpus = load_corpus("sst2", data_dir=data_folder("sst2"))
    texts = {name: [example.text for example in split] for name, split in corpus.splits.items()}
    tokenizer = build_word_tokenizer(texts["train"], min_df=1, max_length=512)
    labels = {name: np.array([e.label == "positive" for e in split], np.int64) for name, split in corpus.splits.items()}
    data = {name: Data(tokenizer.encode(texts[name]), None, labels[name]) for name in texts}
    job = replace(job, train=data["train"], validation=data["validation"], training=Training(), synonyms=None)

    def macro_f1(model: Classifier) -> float:
        predicted = inference.logits(model, data["test"]).argmax(-1)
        return float(f1_score(labels["test"], predicted, average="macro"))

    def run(name: str, work: Callable[[], tuple[list[Classifier], int]]) -> None:
        """Print time, macro-F1, and the epochs of all models until they stop early."""
        torch.cuda.synchronize()
        start = time.perf_counter()
        models, epochs = work()
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        scores = [macro_f1(model.to(job.accelerator.device)) for model in models]
        spread = statistics.stdev(scores) if len(scores) > 1 else float("nan")
        score = f"{statistics.mean(scores):.4f} ± {spread:.4f}"
        print(f"{name:28} {seconds:7.1f} s   macro-F1 {score}   {epochs:4} epochs", flush=True)

    def loops(stacks: bool, seeds: range) -> list[TechniqueLoop]:
        own = replace(job, stacks=stacks)
        return [loop_of(Vanilla(), own, tokenizer.size, seed, arguments.encoder) for seed in seeds]

    def train(groups: list[list[TechniqueLoop]]) -> tuple[list[Classifier], int]:
        for group in groups:
            train_loops(group)
        states = [loop.state for group in groups for loop in group]
        return [state.model for state in states], sum(state.epoch for state in states)

    def execute(consensus: TrainingRun) -> tuple[list[Classifier], int]:
        return [consensus.execute()], len(consensus.history)

    seeds = range(arguments.seeds)
    run("one step of each kind", lambda: train([loops(True, range(2)), loops(False, range(1))]))
    if not arguments.without_eager:
        run("vanilla, eager", lambda: train([loops(False, range(1))]))
    run(f"{len(seeds)} seeds as a stack", lambda: train([loops(True, seeds)]))
    run(f"{len(seeds)} seeds one by one, graph", lambda: train([[loop] for loop in loops(True, seeds)]))
    if not arguments.without_eager:
        run("3 seeds one by one, eager", lambda: train([[loop] for loop in loops(False, range(3))]))
    for name, stacks in (("consensus, stacked teachers", True), ("consensus, eager", False)):
        if not stacks and arguments.without_eager:
            continue
        technique = TECHNIQUES["consensus"]()
        make = partial(word_model, arguments.encoder, tokenizer.size)
        consensus = TrainingRun(technique, make, replace(job, stacks=stacks))
        run(name, partial(execute, consensus))  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("part", choices=["steps", "techniques", "equal", "seeds"])
    parser.add_argument("--seeds", type=int, default=25)
    parser.add_argument("--without-eager", action="store_true")
    parser.add_argument("--stacks", default="1,5,8,32")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--block", type=int, default=40)
    parser.add_argument("--encoder", default="bilstm")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    data, size = corpus()
    with accelerator(arguments.device, "no") as accelerate:
        table = synonyms(size).to(accelerate.device)
        job = TrainingJob(data, data, Training(epochs=1000), accelerate, SilentWatcher(), table)
        part: dict[str, Callable[..., None]] = {
            "steps": measure_steps, "techniques": measure_techniques, "equal": measure_difference,
            "seeds": measure_seeds,
        }  # fmt: skip
        part[arguments.part](job, size, arguments)


if __name__ == "__main__":
    main()
