"""Time of comprehensiveness and sufficiency in the audit, beside one text at a time and beside forward passes alone.

    python bench/audit.py [--texts 500] [--rounds 3] [--threads 1] [--device cpu] [--ferret PYTHON]

All variants run in turn on the same model and the same SST-2 texts, with five sizes of each measure.  Times are medians
over the rounds.  The weights of the models are random, except MiniLM's encoder: time does not depend on them.

    one at a time   for each text and size: erase, then a forward pass of this text alone
    ours            erase_words on batches of 256 texts, as in the audit, and the measures
    bare            the forward passes of `ours` alone, with prepared batches
    ferret          the two AOPC measures of ferret-xai for every tenth text, from the same strings and scores.  Its
                    sizes are rounded down, so it has fewer forward passes.  It has no bar.

PYTHON is the interpreter of a separate environment, made by: pip install torch ferret-xai==0.4.2 'pyarrow<22'.
Exits with 1 if one at a time takes less than 2.5 times as long as ours (10 times on a GPU), if ours takes more than
1.5 times as long as the bare passes, or if the results of both ways of erasing differ.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from data_folder import has_corpus
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.core.types import Batch
from steadygaze.data.batches import Data, by_length, collate
from steadygaze.data.corpora import load_corpus
from steadygaze.data.subword_tokenizer import load_subword_tokenizer
from steadygaze.data.text_tokenizer import Tokens
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.models.classifier import Architecture, Classifier, word_encoder
from steadygaze.models.encoders.transformer import from_folder, locate
from steadygaze.models.inference import Model, inference
from steadygaze.properties.measures.faithfulness_measures import comprehensiveness, sufficiency
from steadygaze.properties.probes.erasure import SHARES, erase_words
from steadygaze.properties.probes.text_perturbations import observe

T = TypeVar("T")
MIN_SPEEDUP = {"cpu": 2.5, "cuda": 10.0}
MAX_OVERHEAD = 1.5
TOLERANCE = 1e-5
FERRET_STEP = 10  # ferret explains every tenth text
BATCH_SIZE = 256
SHAPE = Architecture(hidden=128)


@dataclass(frozen=True)
class Case:
    batch: Batch
    clean: Tensor  # (B,C)
    weights: Tensor  # (B,T)


def texts(count: int) -> list[str]:
    """Validation and test sentences of SST-2 if $STEADYGAZE_DATA has it; else sentences of planted reviews."""
    if has_corpus("sst2"):
        splits = load_corpus("sst2").splits
        return [e.text for name in ("validation", "test") for e in splits[name]][:count]
    print("$STEADYGAZE_DATA has no SST-2: sentences of planted reviews instead")
    examples = load_corpus("planted-reviews").splits["train"]
    return [e.text[start:end] for e in examples for start, end in e.sentences or ()][:count]


def build_bilstm(read: list[str]) -> tuple[Model, Data]:
    tokens = build_word_tokenizer(read, min_df=1, max_length=512)
    encoder = word_encoder("bilstm", SHAPE, tokens.size, pair=False)
    return Classifier(encoder, SHAPE, classes=2, pair=False), Data(tokens.encode(read))


def build_minilm(read: list[str]) -> tuple[Model, Data]:
    folder = locate("minilm")
    tokens = load_subword_tokenizer(folder, max_length=512)
    return Classifier(from_folder(folder), SHAPE, classes=2, pair=False), Data(tokens.encode(read))


MODELS = {"bilstm": build_bilstm, "minilm": build_minilm}


def cases(model: Model, data: Data) -> list[Case]:
    """Batches, predictions and saliencies: the inputs of erasure in an audit."""
    batches = [collate(data, rows).to(model.device) for rows in by_length(data, BATCH_SIZE)]
    return [Case(batch, seen.probs, seen.weights) for batch in batches for seen in [observe(model, batch)]]


def erase_in_batches(model: Model, cases: list[Case]) -> Tensor:
    """Comprehensiveness and sufficiency of all texts.  (2,N)"""
    erasures = [(case.clean, *erase_words(model, case.batch, case.clean, case.weights)) for case in cases]
    return torch.cat([torch.stack([comprehensiveness(c, w), sufficiency(c, a)]) for c, w, a in erasures], 1)


def erase_one_by_one(model: Model, cases: list[Case]) -> Tensor:
    """The same with one forward pass for each text, size and measure.  (2,N)"""
    measures = []
    for case in cases:
        for row in range(len(case.batch)):
            without, alone = (torch.stack(probs) for probs in zip(*_erase_text(model, case, row), strict=True))
            clean = case.clean[row : row + 1]
            measures.append(torch.stack([comprehensiveness(clean, without[None]), sufficiency(clean, alone[None])]))
    return torch.cat(measures, 1)


def _erase_text(model: Model, case: Case, row: int) -> list[tuple[Tensor, Tensor]]:
    positions = case.batch.mask[row].nonzero().flatten()
    order = positions[case.weights[row, positions].argsort(descending=True, stable=True)]
    sizes = [math.ceil(share * len(order) - 1e-9) for share in SHARES]
    without = partial(_predict_without, model, case.batch, row)
    return [(without(order[:k]), without(order[k:])) for k in sizes]


def _predict_without(model: Model, batch: Batch, row: int, positions: Tensor) -> Tensor:
    present = batch.present[row : row + 1].clone()
    present[0, positions] = False
    kept = present[0] if present.any() else torch.arange(present.shape[1], device=present.device) < 1  # padding alone
    ids, words = batch.ids[row : row + 1, kept], batch.mask[row : row + 1, kept]
    present = present[:, kept]
    return observe(model, Batch(ids, present, words & present, batch.index[row : row + 1])).probs[0]


def recorded_batches(model: Model, cases: list[Case]) -> list[Batch]:
    """The batches of all forward passes of `erase_in_batches`."""
    batches: list[Batch] = []
    handle = model.register_forward_pre_hook(lambda _, inputs: batches.append(inputs[0]))
    erase_in_batches(model, cases)
    handle.remove()
    return batches


def run_forward_passes(model: Model, passes: list[Batch]) -> None:
    with inference(model):
        for batch in passes:
            model(batch)


def time_call(work: Callable[[], T], device: str) -> tuple[float, T]:
    """Seconds of a call, and its result."""
    start = time.perf_counter()
    result = work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start, result


def compare(name: str, model: Model, data: Data, options: argparse.Namespace) -> bool:
    """Print all ratios; return whether they meet their limits."""
    audit_cases = cases(model.to(options.device), data)
    passes = recorded_batches(model, audit_cases)
    rows, real, padded = (sum(column) for column in zip(*map(_counts, passes), strict=True))
    print(f"{name}: {10 * len(data)} erasures, {rows} differ: {real} tokens in {len(passes)} passes, {padded} padded")
    speedups, overheads, differences = [], [], []
    for _ in range(options.rounds):
        single, slow = time_call(lambda: erase_one_by_one(model, audit_cases), options.device)
        ours, fast = time_call(lambda: erase_in_batches(model, audit_cases), options.device)
        floor, _ = time_call(lambda: run_forward_passes(model, passes), options.device)
        print(f"{name}: one at a time {single:.2f} s   ours {ours:.2f} s   bare {floor:.2f} s")
        speedups.append(single / ours)
        overheads.append(ours / floor)
        differences.append(float((slow - fast).abs().max()))
    print(f"{name}: one at a time / ours = {median(speedups):.2f}  (at least {MIN_SPEEDUP[options.device]})")
    print(f"{name}: ours / bare forward passes = {median(overheads):.2f}  (at most {MAX_OVERHEAD})")
    print(f"{name}: the two ways differ by {max(differences):.0e}  (at most {TOLERANCE:.0e})")
    return (
        median(speedups) >= MIN_SPEEDUP[options.device]
        and median(overheads) <= MAX_OVERHEAD
        and max(differences) <= TOLERANCE
    )


def _counts(batch: Batch) -> tuple[int, int, int]:
    return len(batch), int(batch.present.sum()), batch.ids.numel()


def compare_with_ferret(read: list[str], options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        save_minilm(Path(scratch))
        subject = as_adapter(scratch, classes=["negative", "positive"], device=options.device)

        def ours() -> Tensor:
            return erase_in_batches(subject.model, cases(subject.model, Data(subject.tokens.encode(read))))

        run = [
            options.ferret,
            Path(__file__).with_name("audit_ferret.py"),
            scratch,
            str(options.threads),
            options.device,
        ]
        ratios = []
        with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdin
            assert child.stdout
            child.stdin.write(
                json.dumps(ferret_explanations(subject.model, subject.tokens, read[::FERRET_STEP])) + "\n"
            )
            for _ in range(options.rounds):
                child.stdin.write("go\n")
                child.stdin.flush()
                ferret = float(child.stdout.readline()) / len(read[::FERRET_STEP])
                own = time_call(ours, options.device)[0] / len(read)
                print(f"ferret {1000 * ferret:.1f} ms per text   ours {1000 * own:.1f} ms per text")
                ratios.append(ferret / own)
            child.stdin.close()
    print(f"ferret / ours, from strings, per text = {median(ratios):.2f}  (no bar)")


def save_minilm(folder: Path) -> None:
    """Save MiniLM as a Hugging Face sequence classifier."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, logging

    logging.set_verbosity_error()  # no warning about the new head
    logging.disable_progress_bar()
    source = locate("minilm")
    AutoModelForSequenceClassification.from_pretrained(source, num_labels=2).save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)


def ferret_explanations(model: Model, tokens: Tokens, read: list[str]) -> list[dict[str, object]]:
    """Texts with their tokens, scores and classes, in the form of ferret."""
    explanations = []
    for text in read:
        batch = collate(Data(tokens.encode([text])), np.arange(1)).to(model.device)
        output = observe(model, batch)
        names = [tokens.vocabulary[i] for i in batch.ids[0].tolist()]
        scores = [*map(float, output.weights[0])]
        explanations.append({"text": text, "tokens": names, "scores": scores, "target": int(output.probs.argmax())})
    return explanations


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=MIN_SPEEDUP, default="cpu")
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--ferret", metavar="PYTHON")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    read = texts(options.texts)
    passed = [compare(name, *MODELS[name](read), options) for name in options.models]
    if options.ferret:
        compare_with_ferret(read, options)
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
