"""Operations that PyTorch dispatches in a training step of a transformer: a bare loop, ours, and each technique.

The numbers do not depend on the machine or its load.  Without a CUDA graph, they determine most of the time of a step
with short texts on a GPU.  `--encoder` is a folder of a BERT encoder; without weights in it, they are random.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch.utils._python_dispatch import TorchDispatchMode

from steadygaze.data.batches import Data
from steadygaze.data.subword_tokenizer import load_subword_tokenizer
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.technique_loop import TrainingJob
from timings.harness import Result
from timings.transformer_throughput import Ours, texts_of, with_weights

BATCH, LONGEST, STEPS = 4, 6, 3
NAMES = ("vanilla", "attention-rp", "attention-at", "attention-iat", "word-at", "word-iat")


class Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operations, also of the backward pass and of the optimizer."""

    count: int = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return function(*args, **(kwargs or {}))


def operations(run: Callable[[int], object]) -> float:
    """Operations per step, after two steps."""
    run(2)
    with Counter() as counter:  # type: ignore[no-untyped-call]
        run(STEPS)
    return int(counter.count) / STEPS


def bare_loop(folder: Path, job: TrainingJob, precision: str) -> Callable[[int], None]:
    """The loop of Hugging Face's tutorials, without a Trainer."""
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2).train()
    adam = torch.optim.AdamW(model.parameters(), fused=True)
    label = torch.arange(BATCH) % 2
    ids = torch.from_numpy(job.train.text.ids[: BATCH * LONGEST].astype("int64")).view(BATCH, LONGEST)
    mask = torch.ones_like(ids)
    mask[0, -1] = 0  # without padding, the network would omit its mask

    def run(steps: int) -> None:
        for _ in range(steps):
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
                loss = model(input_ids=ids, attention_mask=mask, labels=label).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()
            adam.zero_grad()

    return run


def run(*, encoder: Annotated[Path, typer.Option()]) -> list[Result]:
    """Counts, and their ratios to the bare loop and to vanilla."""
    folder = with_weights(encoder)
    texts, labels = texts_of(1)
    rows = [row for row, text in enumerate(texts) if len(text.split()) < LONGEST]
    tokenizer = load_subword_tokenizer(folder, max_length=510)
    data = Data(tokenizer.encode([texts[row] for row in rows]), None, labels[rows])
    results = []
    for precision in ("no", "bf16"):
        with accelerator("cpu", precision) as accelerate:
            training = Training(epochs=1000, precision=precision, batch_size=BATCH)
            job = TrainingJob(data, data, training, accelerate, SilentWatcher(), stacks=False)
            counts = {"bare loop": operations(bare_loop(folder, job, precision))}
            counts |= {name: operations(Ours(name, job, folder, False).run) for name in NAMES}
        for name, count in counts.items():
            results.append(Result(f"{name}, precision {precision}", count, "operations per step"))
            for base in ("bare loop", "vanilla"):
                results.append(Result(f"{name} / {base}, precision {precision}", count / counts[base], "×"))
    return results
