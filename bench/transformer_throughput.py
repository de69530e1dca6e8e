"""Tokens per second of fine-tuning a transformer on a GPU, against a plain loop of Hugging Face's Trainer.

All variants read the same texts in the same batches, in turn, in rounds.  A ratio is the median over the rounds, with
the smallest and the largest.  Tokens are real tokens, without padding.

    python bench/transformer_throughput.py --encoder FOLDER [--repeat 1] [--rounds 5] [--steps 60] [--precision no]

`--encoder` is a folder of a BERT encoder; without weights in it, they are random.  `--repeat` joins texts to longer
ones.  `--techniques` measures the techniques against vanilla instead.  `--compiled` adds the network with
torch.compile, in the ordinary loop and in CUDA graphs, with the seconds before its first timed step.  `--wait-for`
warms up, and measures when these files exist.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from data_folder import data_folder
from steadygaze.data.batches import Data
from steadygaze.data.corpora import load_corpus
from steadygaze.data.subword_tokenizer import load_subword_tokenizer
from steadygaze.models.classifier import Architecture, Classifier
from steadygaze.models.encoders.transformer import from_folder
from steadygaze.techniques import TECHNIQUES
from steadygaze.training.device import accelerator, own_state
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.stacked_loop import StackedLoop
from steadygaze.training.technique_loop import TechniqueLoop, TrainingJob
from steadygaze.training.training_run import RESULT, TrainingRun, freeze

BATCH = 32
TECHNIQUE_NAMES = (
    "vanilla",
    "attention-rp",
    "attention-at",
    "attention-iat",
    "seat",
    "word-at",
    "word-iat",
    "anchored",
)


def with_weights(folder: Path) -> Path:
    """The folder of an encoder; random weights are added to a copy of a folder without any."""
    if list(folder.glob("*.safetensors")):
        return folder
    from transformers import AutoConfig, AutoModel

    copy = Path(tempfile.mkdtemp())
    AutoModel.from_config(AutoConfig.from_pretrained(folder)).save_pretrained(copy)
    (copy / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    return copy


def texts_of(repeat: int) -> tuple[list[str], NDArray[np.int64]]:
    examples = load_corpus("sst2", data_dir=data_folder("sst2")).splits["train"]
    texts = [" ".join(e.text for e in examples[i : i + repeat]) for i in range(0, len(examples), repeat)]
    return texts, np.array([e.label == "positive" for e in examples[::repeat]], np.int64)


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


class Ours:
    """Steps of our loop: one step at a time, or as CUDA graphs."""

    def __init__(self, name: str, job: TrainingJob, folder: Path, static: bool, compiled: bool = False) -> None:
        technique = TECHNIQUES[name]()

        def make() -> Classifier:
            encoder = from_folder(folder)
            if compiled:
                encoder.network.compile(dynamic=True)
            return Classifier(encoder, Architecture(), classes=2, pair=False)

        torch.manual_seed(0)
        run = TrainingRun(technique, make, job)
        names = {stage.model for stage in technique.stages(0)} - {RESULT}
        run.models = {other: freeze(make().to(job.accelerator.device)) for other in sorted(names)}
        stage = technique.stages(0)[-1]
        self.loop: TechniqueLoop = run._loop(0, stage, run._begin(stage, (0, 0)))
        self.is_static, self.is_compiled = static, compiled
        self.steps = self._static() if static else self._ordinary()

    def _ordinary(self) -> Iterator[None]:
        while True:
            self.loop.start_epoch()
            for rows in self.loop.batches():
                yield self.loop.train_batch(rows)  # type: ignore[misc]

    def _static(self) -> Iterator[None]:
        stack = StackedLoop([self.loop])
        while True:
            widths = stack._start_epoch()
            for width in widths:
                yield stack.run_step(width)
            self.loop.state.step += len(widths)

    def run(self, steps: int) -> float:
        """Seconds per step."""
        synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            next(self.steps)
        synchronize()
        return (time.perf_counter() - start) / steps


class HuggingFace:
    """Steps of transformers.Trainer on the same batches."""

    def __init__(self, job: TrainingJob, folder: Path, batches: list[NDArray[np.int64]]) -> None:
        from transformers import AutoModelForSequenceClassification, PreTrainedTokenizerFast

        self.model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2)
        self.tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), pad_token="[PAD]")
        text, label = job.train.text, job.train.label
        assert label is not None
        self.items = [
            {"input_ids": text.ids[text.starts[row] : text.starts[row + 1]].tolist(), "labels": int(label[row])}
            for rows in batches
            for row in rows
        ]
        self.precision, self.position = job.training.precision, 0

    def run(self, steps: int) -> float:
        from torch.utils.data import SequentialSampler
        from transformers import DataCollatorWithPadding, Trainer, TrainerCallback, TrainingArguments

        times: list[float] = []

        class Clock(TrainerCallback):
            def on_step_begin(self, *_: Any, **__: Any) -> None:
                if not times:
                    synchronize()
                    times.append(time.perf_counter())

        class InOrder(Trainer):
            def _get_train_sampler(self, *arguments: Any) -> Any:
                return SequentialSampler(self.train_dataset)

        first = self.position % (len(self.items) // BATCH - steps) * BATCH
        part = self.items[first : first + steps * BATCH]
        self.position += steps
        collator = DataCollatorWithPadding(self.tokenizer)
        with own_state():
            options = TrainingArguments(
                tempfile.mkdtemp(), max_steps=steps, per_device_train_batch_size=BATCH, bf16=self.precision == "bf16",
                logging_strategy="no", save_strategy="no", report_to=[], disable_tqdm=True,
            )  # fmt: skip
            InOrder(self.model, options, train_dataset=part, data_collator=collator, callbacks=[Clock]).train()
        synchronize()
        return (time.perf_counter() - times[0]) / steps


def alternate(variants: dict[str, Any], rounds: int, steps: int, files: Sequence[Path] = ()) -> dict[str, list[float]]:
    """Milliseconds per step of each variant, in each round, when all files exist."""
    for name, variant in variants.items():  # graphs are captured, kernels are compiled
        start = time.perf_counter()
        variant.run(4 * steps if isinstance(variant, Ours) and (variant.is_static or variant.is_compiled) else 5)
        print(f"{name:24} {time.perf_counter() - start:8.1f} s to warm up", flush=True)
    while not all(file.exists() for file in files):
        time.sleep(0.2)
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, variant in variants.items():
            seconds[name].append(1000 * variant.run(steps))
    return seconds


def show(seconds: dict[str, list[float]], base: str, tokens: float) -> None:
    for name, times in seconds.items():
        ratios = sorted(other / own for own, other in zip(times, seconds[base], strict=True))
        rate = tokens / statistics.median(times)
        print(
            f"{name:24} {statistics.median(times):8.2f} ms/step {1000 * rate:10,.0f} tokens/s "
            f"{statistics.median(ratios):6.2f} × {base} ({ratios[0]:.2f} to {ratios[-1]:.2f})",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--encoder", required=True, type=Path)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--precision", default="no", choices=["no", "bf16"])
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--techniques", action="store_true")
    parser.add_argument("--wait-for", type=Path, nargs="*", default=())
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    folder = with_weights(arguments.encoder)
    texts, labels = texts_of(arguments.repeat)
    tokenizer = load_subword_tokenizer(folder, max_length=510)
    data = Data(tokenizer.encode(texts), None, labels)
    tokens = BATCH * float(data.text.lengths.mean())
    print(f"{len(texts):,} texts, {tokens / BATCH:.0f} tokens on average, precision {arguments.precision}")
    with accelerator(arguments.device, arguments.precision) as accelerate:
        training = Training(epochs=1000, precision=arguments.precision)
        job = TrainingJob(data, data, training, accelerate, SilentWatcher())
        own = replace(job, stacks=False)
        variants: dict[str, Any]
        if arguments.techniques:
            variants = {name: Ours(name, own, folder, False) for name in TECHNIQUE_NAMES}
            show(alternate(variants, arguments.rounds, arguments.steps), "vanilla", tokens)
            variants = {name: Ours(name, job, folder, True) for name in TECHNIQUE_NAMES}
            show(alternate(variants, arguments.rounds, arguments.steps), "vanilla", tokens)
            return
        ordinary = Ours("vanilla", own, folder, False)
        variants = {
            "Trainer": HuggingFace(job, folder, ordinary.loop.batches()[:-1]),
            "ordinary loop": ordinary,
            "CUDA graph": Ours("vanilla", job, folder, True),
        }
        if arguments.compiled:
            variants["ordinary, compiled"] = Ours("vanilla", own, folder, False, True)
            variants["CUDA graph, compiled"] = Ours("vanilla", job, folder, True, True)
        seconds = alternate(variants, arguments.rounds, arguments.steps, arguments.wait_for)
        show(seconds, "Trainer", tokens)
        if arguments.compiled:
            show(seconds, "CUDA graph", tokens)


if __name__ == "__main__":
    main()
