"""ModelOptions: how a command reads its model."""

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from annotated_types import Ge

from steadygaze.core.arguments import Option

OPTIONAL = ("attention", "target", "threshold")
"""Options that only some commands with a model have; every command has the others."""


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The options of the commands that load a model, and fields of AuditConfig.

    `adapters.as_adapter.load_named` loads the model; `target` and `threshold` choose an output of it afterwards.
    """

    attention: Annotated[Literal["last", "rollout"], Option("Model", "Attention of a Hugging Face model.")] = "last"
    classes: Annotated[
        tuple[str, ...],
        Option("Model", "Names of the classes, in the model's order.", "A,B", "the model's", comma=True),
    ] = ()
    target: Annotated[str | None, Option("Model", "Output of a multi-label or regression model.", "NAME")] = None
    threshold: Annotated[
        float | None, Option("Model", "With a regression model: audit values above this number.", "X", "the median")
    ] = None
    dtype: Annotated[
        Literal["auto", "bf16", "fp16", "fp32"], Option("Model", "Precision of a Hugging Face model.", default="stored")
    ] = "auto"
    device_map: Annotated[
        Literal["none", "auto", "balanced", "sequential"], Option("Model", "Spread its layers over several GPUs.")
    ] = "none"
    quantization_config: Annotated[
        Literal["none", "4bit", "8bit"], Option("Model", "Quantize it (GPU, bitsandbytes).", name="--quantize")
    ] = "none"
    base_model: Annotated[
        str | None, Option("Model", "Base model of a LoRA adapter.", "MODEL", "the adapter's, from the hub")
    ] = None
    prompt: Annotated[str | None, Option("Model", "Prompt of a language model, with {text}.", "TEMPLATE")] = None
    label_words: Annotated[
        tuple[str, ...],
        Option("Model", "With --prompt: word that stands for a label; repeatable.", "LABEL=WORD", name="--label-word"),
    ] = ()
    votes: Annotated[
        int | None,
        Ge(1),
        Option(
            "Model",
            "Answers per text of a function or hosted model.",
            "K",
            "1; 10 of a server without log-probabilities",
        ),
    ] = None
    max_requests: Annotated[
        int | None, Ge(0), Option("Model", "Most requests to a hosted model, retries included.", "N", "no limit")
    ] = None
    concurrency: Annotated[int, Ge(1), Option("Model", "Requests to a hosted model at a time.", "N")] = 8
    instruction: Annotated[str | None, Option("Model", "With --prompt: what precedes it, once.", "TEXT")] = None
    examples: Annotated[
        tuple[str, ...],
        Option("Model", "With --prompt: a solved example; repeatable.", "LABEL=TEXT", name="--example"),
    ] = ()
    chat: Annotated[bool, Option("Model", "With --prompt: as messages, by the tokenizer's chat template.")] = False
    calibrate: Annotated[bool, Option("Model", "With --prompt: subtract the scores of an empty text.")] = False

    @property
    def changed(self) -> dict[str, Any]:
        """The options whose value is not the default."""
        values = {item.name: getattr(self, item.name) for item in fields(ModelOptions)}
        return {name: value for name, value in values.items() if value != getattr(ModelOptions, name)}
