"""Checks of the network and the arguments of a StableTrainer, before training."""

from typing import Any

from steadygaze.adapters.huggingface import HEAD, PROBLEM_TYPES
from steadygaze.core.errors import UserError
from steadygaze.techniques.vanilla import Vanilla


def check_arguments(trainer: Any) -> None:
    """Refuse arguments that would change the loss, or that need a whole network in one process."""
    args = trainer.args
    if args.label_smoothing_factor:
        raise UserError("StableTrainer has no label smoothing: leave out label_smoothing_factor")
    if trainer.compute_loss_func is not None:
        raise UserError("StableTrainer takes its loss from technique=: leave out compute_loss_func")
    if isinstance(trainer.technique, Vanilla):
        return
    reentrant = (args.gradient_checkpointing_kwargs or {}).get("use_reentrant", False)
    problems = {
        "several GPUs in one process": (args.n_gpu > 1, "start the script with torchrun or accelerate launch"),
        "FSDP and DeepSpeed": (
            trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled,
            "train with DDP, LoRA or gradient_checkpointing",
        ),
        "torch_compile": (args.torch_compile, "leave it out"),
        "reentrant gradient checkpointing": (
            args.gradient_checkpointing and reentrant,
            "set gradient_checkpointing_kwargs={'use_reentrant': False}",
        ),
    }
    for name, (is_set, fix) in problems.items():
        if is_set:
            raise UserError(f"perturbed word vectors do not work with {name}: {fix}, or train with technique='vanilla'")


def check_network(trainer: Any) -> None:
    """Refuse networks that do not assign one class to a text."""
    network: Any = trainer.accelerator.unwrap_model(trainer.model)
    base = network.get_base_model() if hasattr(network, "get_base_model") else network
    names = [kind.__name__ for kind in type(base).__mro__]
    if not any(HEAD in name for name in names):
        raise UserError(f"a {names[0]} is not a classifier of texts: StableTrainer needs a …{HEAD}")
    task = PROBLEM_TYPES.get(base.config.problem_type, "classification")
    if task != "classification" or base.config.num_labels < 2:
        raise UserError(
            f"StableTrainer trains classifiers with one label per text; problem_type={base.config.problem_type!r} with "
            f"num_labels={base.config.num_labels} needs transformers.Trainer"
        )
    if base.config.is_encoder_decoder and not isinstance(trainer.technique, Vanilla):
        raise UserError(
            f"a {names[0]} reads a text twice, in its encoder and its decoder, so its word vectors cannot be "
            "perturbed: use an encoder such as BERT, or technique='vanilla'"
        )
