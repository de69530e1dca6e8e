"""Tokens per second of fine-tuning a transformer on a GPU, against a plain loop of Hugging Face's Trainer.

All variants read the same texts in the same batches, in turn, in rounds.  Tokens are real tokens, without padding.
`--encoder` is a folder of a BERT encoder; without weights in it, they are random.
"""

import statistics
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
import typer
from numpy.typing import NDArray

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
from studies.data_folder import data_folder
from timings.harness import Race, Result, clocked, synchronize
from timings.inputs import ordinary_steps, stacked_steps, take

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
        self.steps = stacked_steps(StackedLoop([self.loop])) if static else ordinary_steps(self.loop)

    def run(self, steps: int) -> float:
        """Seconds per step."""
        return clocked(partial(take, self.steps, steps))[0] / steps


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

        class Clock(TrainerCallback):  # type: ignore[misc]
            def on_step_begin(self, *_: Any, **__: Any) -> None:
                if not times:
                    synchronize()
                    times.append(time.perf_counter())

        class InOrder(Trainer):  # type: ignore[misc]
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


def alternate(variants: dict[str, "Ours | HuggingFace"], rounds: int, steps: int) -> tuple[Race, list[Result]]:
    """Seconds of blocks of steps of each variant in turn, and of its warm-up: graphs captured, kernels compiled."""
    times, warm_up = Race(), []
    for name, variant in variants.items():
        slow = isinstance(variant, Ours) and (variant.is_static or variant.is_compiled)
        warm_up.append(Result(f"{name}, warm-up", clocked(partial(variant.run, 4 * steps if slow else 5))[0], "s"))
    for _ in range(rounds):
        for name, variant in variants.items():
            times.add(name, variant.run(steps), 0.0)
    return times, warm_up


def run(
    *,
    encoder: Annotated[Path, typer.Option()],
    repeat: int = 1,
    rounds: int = 5,
    steps: int = 60,
    precision: Literal["no", "bf16"] = "no",
    compiled: bool = False,
    techniques: bool = False,
    device: str = "cuda",
) -> list[Result]:
    """`repeat`: texts joined to one; `techniques`: techniques against vanilla; `compiled`: also with torch.compile."""
    folder = with_weights(encoder)
    texts, labels = texts_of(repeat)
    data = Data(load_subword_tokenizer(folder, max_length=510).encode(texts), None, labels)
    tokens = BATCH * float(data.text.lengths.mean())
    with accelerator(device, precision) as accelerate:
        training = Training(epochs=1000, precision=precision)
        job = TrainingJob(data, data, training, accelerate, SilentWatcher())
        own = replace(job, stacks=False)
        if techniques:
            groups: list[dict[str, Ours | HuggingFace]] = [
                {f"{name}, ordinary": Ours(name, own, folder, False) for name in TECHNIQUE_NAMES},
                {f"{name}, graph": Ours(name, job, folder, True) for name in TECHNIQUE_NAMES},
            ]
        else:
            ordinary = Ours("vanilla", own, folder, False)
            trainer = HuggingFace(job, folder, ordinary.loop.batches()[:-1])
            groups = [{"Trainer": trainer, "ordinary loop": ordinary, "graph": Ours("vanilla", job, folder, True)}]
            if compiled:
                groups[0]["ordinary loop, compiled"] = Ours("vanilla", own, folder, False, True)
                groups[0]["graph, compiled"] = Ours("vanilla", job, folder, True, True)
        results = []
        for group in groups:
            times, warm_up = alternate(group, rounds, steps)
            base, *others = group
            rates = [Result(f"{name}, tokens/s", tokens / statistics.median(times.wall[name])) for name in group]
            ratios = [times.ratio(name, base) if techniques else times.ratio(base, name) for name in others]
            ratios += [times.ratio("graph", "graph, compiled")] if "graph, compiled" in group else []
            results += [*warm_up, *(times.time(name) for name in group), *rates, *ratios]
    return results
