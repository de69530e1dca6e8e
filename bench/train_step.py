"""Time of a training step relative to a bare PyTorch loop with the same model, batches and optimizer.

    python bench/train_step.py [--steps 200] [--block 4] [--hidden 128] [--threads 1]

Ours is the complete training run, with padding of batches, accelerate, loss terms and a watcher.  The bare loop has
prepared batches.  Blocks of steps alternate on the same batches, and the ratio is the median over the blocks.  Exits
with 1 if the ratio is above 1.10, or if the weights of both models are not bitwise equal at the end.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from data_folder import has_corpus
from steadygaze.core.random_key import derive_seed
from steadygaze.core.types import Batch
from steadygaze.data.batches import Data, collate, shuffled
from steadygaze.data.corpora import load_corpus
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.models.classifier import Architecture, Classifier, word_encoder
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.technique_loop import TrainingJob
from steadygaze.training.training_run import TrainingRun

MAX_RATIO = 1.10
WARM_UP_BLOCKS = 2  # blocks before caches and memory pools are full


def corpus() -> tuple[Data, int]:
    """Training sentences of SST-2 if $STEADYGAZE_DATA has it, else of planted reviews, as ids; vocabulary size."""
    if has_corpus("sst2"):
        examples = load_corpus("sst2").splits["train"]
        texts, labels = [e.text for e in examples], [e.label for e in examples]
    else:
        examples = load_corpus("planted-reviews").splits["train"]
        texts = [e.text[start:end] for e in examples for start, end in e.sentences or ()]
        labels = [e.label for e in examples for _ in e.sentences or ()]
    tokenizer = build_word_tokenizer(texts, min_df=1, max_length=512)
    known = {label: i for i, label in enumerate(sorted(set(labels), key=str))}
    return Data(tokenizer.encode(texts), None, torch.tensor([known[label] for label in labels]).numpy()), tokenizer.size


class BareLoop:
    """A training loop of plain PyTorch."""

    def __init__(self, model: Classifier, training: Training) -> None:
        self.model, self.training = model.train(), training
        plain = [*model.encoder.embedding.parameters(), *model.scorer.parameters()]
        decayed = [*model.encoder.text.parameters(), *model.decoder.parameters()]
        groups = [{"params": plain}, {"params": decayed, "weight_decay": training.weight_decay}]
        self.adam = torch.optim.Adam(groups, lr=training.learning_rate, amsgrad=True, fused=True)

    def steps(self, batches: list[Batch]) -> None:
        for batch in batches:
            loss = cross_entropy(self.model(batch).logits, batch.gold)
            self.adam.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.training.clip)
            self.adam.step()


class BlockTimer(SilentWatcher):
    """Runs and times the bare loop on the same batches after each block of our steps."""

    def __init__(self, bare: BareLoop, batches: list[Batch], block: int) -> None:
        self.bare, self.batches, self.block = bare, batches, block
        self.step_count = 0
        self.our_times: list[float] = []
        self.bare_times: list[float] = []

    def start(self, stages: int, epochs: int, steps: int) -> None:
        self.block_start = time.perf_counter()

    def step(self, stage: str, epoch: int, terms: Mapping[str, Tensor]) -> None:
        self.step_count += 1
        if self.step_count % self.block == 0:
            middle = time.perf_counter()
            self.bare.steps(self.batches[self.step_count - self.block : self.step_count])
            self.our_times.append(middle - self.block_start)
            self.block_start = time.perf_counter()
            self.bare_times.append(self.block_start - middle)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--block", type=int, default=4, help="steps of one kind in a row")
    parser.add_argument("--encoder", default="bilstm")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    data, size = corpus()
    training = Training(epochs=1)
    count = min(len(data), options.steps * training.batch_size)
    data = Data(data.text.select(range(count)), None, data.label[:count])
    shape = Architecture(hidden=options.hidden)

    def make() -> Classifier:
        return Classifier(word_encoder(options.encoder, shape, size, pair=False), shape, classes=2, pair=False)

    torch.manual_seed(derive_seed(0, 0))  # as a run with seed 0 begins
    bare = BareLoop(make(), training)
    batches = [collate(data, rows) for rows in shuffled(data, training.batch_size, (0, 0, 0))]
    watcher = BlockTimer(bare, batches, options.block)
    few = Data(data.text.select(range(64)), None, data.label[:64])
    with accelerator("cpu", "no") as accelerate:
        model = TrainingRun(Vanilla(), make, TrainingJob(data, few, training, accelerate, watcher)).execute()

    ours, bare_times = watcher.our_times[WARM_UP_BLOCKS:], watcher.bare_times[WARM_UP_BLOCKS:]
    ratio = statistics.median(a / b for a, b in zip(ours, bare_times, strict=True))
    for name, times in (("ours", ours), ("bare", bare_times)):
        milliseconds = 1000 * statistics.median(times) / options.block
        print(f"{name}   {milliseconds:7.2f} ms per step (median of {len(times)} blocks)")
    print(f"ratio  {ratio:.3f}   (at most {MAX_RATIO})")
    same = all(torch.equal(a, b) for a, b in zip(model.parameters(), bare.model.parameters(), strict=True))
    print(f"weights after {watcher.step_count} steps: {'bitwise equal' if same else 'DIFFERENT'}")
    return 0 if same and ratio <= MAX_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
