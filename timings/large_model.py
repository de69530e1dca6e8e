"""Memory and seconds of a large language model in bf16: load, predict, explain and audit, beside bare forward passes.

A Llama of 7 billion random parameters is made on the GPU, saved to a temporary folder, and loaded from there.  Texts
are random words.  Bare passes are those that the work needs, without padding and with PyTorch's fused attention:

    predict                 one pass for each text
    leave-one-out           one pass for each text, and one for each word
    integrated-gradients    a forward and a backward pass for each step; attn-lrp: for each text
    audit                   the passes that the audit made, with the same shapes and kernels

`--folder` keeps the model; `--hidden 64 --layers 2 --device cpu` is a trial on a CPU.
"""

import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import psutil
import torch
import typer
from tokenizers import Tokenizer, models, pre_tokenizers, processors

import steadygaze as sg
from steadygaze.adapters.huggingface import quiet
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.explainers.class_probability import GRADIENT_TOKENS, TOKENS
from timings.harness import Result, synchronize

MAX_RATIO, MAX_MEMORY = 1.3, 1.15
WORDS, STEPS, HEAD = 2000, 50, 128
"""Words of the vocabulary, steps of integrated gradients, and the size of an attention head."""
EXPLAINERS = ("leave-one-out", "integrated-gradients", "attn-lrp")
Shape = tuple[int, int, bool]
"""Texts and tokens of a forward pass, and whether a backward pass follows."""


def save_model(folder: Path, hidden: int, layers: int, device: str) -> float:
    """Write a folder as the hub has them; return the bytes of the weights."""
    from transformers import LlamaConfig, LlamaForSequenceClassification, PreTrainedTokenizerFast

    words = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, **{f"w{i}": i + 4 for i in range(WORDS)}}
    engine = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    engine.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    engine.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    PreTrainedTokenizerFast(tokenizer_object=engine, pad_token="<pad>", unk_token="<unk>").save_pretrained(folder)
    heads = max(1, hidden // HEAD)
    config = LlamaConfig(
        vocab_size=32_000, hidden_size=hidden, intermediate_size=hidden * 43 // 16, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=heads, max_position_embeddings=4096, pad_token_id=0,
        num_labels=2, dtype="bfloat16",
    )  # fmt: skip
    with torch.device("meta"):
        network = LlamaForSequenceClassification(config)
    network = network.to(torch.bfloat16).to_empty(device=device)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.02) if parameter.dim() > 1 else torch.nn.init.ones_(parameter)
    network.save_pretrained(folder)
    return float(sum(file.stat().st_size for file in folder.glob("*.safetensors")))


def texts_of(count: int) -> list[str]:
    """Texts of 10 to 70 words."""
    draws = np.random.default_rng(0)
    return [" ".join(f"w{i}" for i in draws.integers(WORDS, size=draws.integers(10, 71))) for _ in range(count)]


def clocked(work: Callable[[], Any]) -> float:
    """Wall seconds."""
    synchronize()
    start = time.perf_counter()
    work()
    synchronize()
    return time.perf_counter() - start


def passes(lengths: Sequence[int], most_tokens: int, backward: bool) -> Iterator[Shape]:
    """Texts of the same length share a pass."""
    for length in sorted(set(lengths)):
        texts = list(lengths).count(length)
        size = max(1, most_tokens // length)
        yield from ((min(size, texts - start), length, backward) for start in range(0, texts, size))


def replay(network: Any, shapes: Sequence[Shape], fused: bool = True) -> None:
    """The forward passes of these shapes, and backward passes to the word vectors."""
    vectors = network.get_input_embeddings().weight
    for texts, length, backward in shapes:
        inputs = vectors[:length].detach().expand(texts, -1, -1)
        with torch.set_grad_enabled(backward):
            inputs = inputs.clone().requires_grad_() if backward else inputs
            mask = torch.ones(texts, length, dtype=torch.long, device=inputs.device)
            output = network(inputs_embeds=inputs, attention_mask=mask, use_cache=False, output_attentions=not fused)
            if backward:
                torch.autograd.grad(output.logits.sum(), inputs)


@contextmanager
def kernel(network: Any, name: str) -> Iterator[None]:
    before, network.config._attn_implementation = network.config._attn_implementation, name
    try:
        yield
    finally:
        network.config._attn_implementation = before


@contextmanager
def recorded(network: Any) -> Iterator[list[tuple[Shape, bool]]]:
    """The shapes of forward passes, and whether each returned attention."""
    shapes: list[tuple[Shape, bool]] = []
    original = network.forward

    def forward(*args: Any, **inputs: Any) -> Any:
        vectors = inputs.get("inputs_embeds")
        texts, length = (inputs["input_ids"] if vectors is None else vectors).shape[:2]
        shapes.append(((texts, length, torch.is_grad_enabled()), bool(inputs.get("output_attentions"))))
        return original(*args, **inputs)

    network.forward = forward
    try:
        yield shapes
    finally:
        network.forward = original


def needed(name: str, lengths: Sequence[int], device: str) -> list[Shape]:
    """The passes that an explainer of texts of these lengths needs."""
    if name == "leave-one-out":
        without = [length - 1 for length in lengths for _ in range(length - 1)]
        return list(passes([*lengths, *without], TOKENS[device], False))
    steps = STEPS if name == "integrated-gradients" else 1
    first = list(passes(lengths, TOKENS[device], False))  # the predicted class
    return first + list(passes(list(lengths) * steps, GRADIENT_TOKENS[device], True))


def peak(device: str) -> float:
    """Bytes: on the GPU, or of this process."""
    if device == "cuda":
        return float(torch.cuda.max_memory_allocated())
    return float(psutil.Process().memory_info().rss)


def load_timed(folder: Path, size: float, device: str) -> tuple[ModelAdapter, list[Result]]:
    before = peak(device) if device == "cpu" else 0.0
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    loaded: list[ModelAdapter] = []
    seconds = clocked(lambda: loaded.append(sg.load(folder, device=device)))
    ratio = (peak(device) - before) / size
    results = [
        Result("weights", size / 1e9, "GB"),
        Result("load", seconds, "s"),
        Result("peak memory of loading / weights", ratio, "×", at_most=MAX_MEMORY),
    ]
    return loaded[0], results


def run(
    *,
    hidden: Annotated[int, typer.Option(help="Size of the hidden states.")] = 4096,
    layers: Annotated[int, typer.Option(help="Layers.")] = 32,
    texts: Annotated[int, typer.Option(help="Predicted texts.")] = 1000,
    explained: Annotated[int, typer.Option(help="Explained texts.")] = 20,
    audited: Annotated[int, typer.Option(help="Audited texts.")] = 50,
    device: Annotated[str, typer.Option(help="cuda or cpu.")] = "cuda",
    folder: Annotated[Path | None, typer.Option(help="Folder for the model; the default is temporary.")] = None,
) -> list[Result]:
    """Seconds, ratios and peaks of memory."""
    warnings.simplefilter("ignore")
    place = Path(tempfile.mkdtemp()) if folder is None else folder
    results: list[Result] = []

    def report(*new: Result) -> None:
        results.extend(new)
        print(*new, sep="\n", flush=True)  # a later part may fail

    try:
        started = time.perf_counter()
        size = save_model(place, hidden, layers, device)
        report(Result("make and save the model", time.perf_counter() - started, "s"))
        model, loading = load_timed(place, size, device)
        report(*loading)
        sentences = texts_of(texts)
        report(*predictions(model, sentences, device))
        report(*explanations(model, sentences[:explained], device))
        report(*audit(model, sentences[:audited], device))
        report(Result("peak memory / weights", peak(device) / size, "×"))
    finally:
        if folder is None:
            shutil.rmtree(place)
    return results


def predictions(model: ModelAdapter, sentences: list[str], device: str) -> list[Result]:
    network = model.model.network
    lengths = [len(text.split()) + 1 for text in sentences]
    shapes = list(passes(lengths, TOKENS[device], False))
    model.predict_proba(sentences)  # warm-up
    seconds = clocked(lambda: model.predict_proba(sentences))
    with kernel(network, "sdpa"), quiet():
        replay(network, shapes)
        bare = clocked(lambda: replay(network, shapes))
    name = f"predict {len(sentences)} texts"
    return [Result(name, seconds, "s"), Result(f"{name} / bare passes", seconds / bare, "×", at_most=MAX_RATIO)]


def explanations(model: ModelAdapter, sentences: list[str], device: str) -> list[Result]:
    network, results = model.model.network, []
    lengths = [len(text.split()) + 1 for text in sentences]
    for name in EXPLAINERS:
        settings = {"steps": STEPS} if name == "integrated-gradients" else None
        explain = partial(model.explain, explainer=name, settings=settings)
        explain(sentences[:1])  # warm-up
        seconds = clocked(partial(explain, sentences))
        with kernel(network, "sdpa"), quiet():
            bare = clocked(partial(replay, network, needed(name, lengths, device)))
        limit = None if name == "attn-lrp" else MAX_RATIO  # its rules replace fused attention
        results.append(Result(f"explain {len(sentences)}, {name}", seconds, "s"))
        results.append(Result(f"explain, {name} / bare passes", seconds / bare, "×", at_most=limit))
    return results


def audit(model: ModelAdapter, sentences: list[str], device: str) -> list[Result]:
    network = model.model.network
    labels = [str(label) for label in model.predict(sentences)]
    with recorded(network) as calls:
        seconds = clocked(lambda: sg.audit(model, sentences, labels, device=device))
    bare = 0.0
    for attentive, name in ((False, "sdpa"), (True, "eager")):
        shapes = [shape for shape, with_attention in calls if with_attention == attentive]
        with kernel(network, name), quiet():
            bare += clocked(partial(replay, network, shapes, name == "sdpa"))
    tokens = sum(texts * length for (texts, length, _), _ in calls)
    return [
        Result(f"audit {len(sentences)} texts", seconds, "s"),
        Result("audit, tokens in forward passes", tokens, ""),
        Result("audit / bare passes", seconds / bare, "×", at_most=MAX_RATIO),
    ]
