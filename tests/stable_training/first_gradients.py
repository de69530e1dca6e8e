"""Script of test_two_processes.py: the gradients of the first step, to a file."""

import os
import sys
from pathlib import Path

from safetensors.torch import save_file

from stable_training.scripts import Gradients, trainer

folder, kind, size, checkpointing = sys.argv[1:]
gradients = Gradients()
arguments = {"max_steps": 2, "max_grad_norm": 0.0, "per_device_train_batch_size": int(size)}
arguments |= {"gradient_checkpointing": checkpointing == "True"}
if "WORLD_SIZE" in os.environ:
    arguments["ddp_backend"] = "gloo"
ours = trainer(Path(folder), kind, arguments=arguments, callbacks=[gradients])
ours.train()
if ours.is_world_process_zero():
    tensors = {name.removeprefix("module."): value.contiguous() for name, value in gradients.steps[0].items()}
    save_file(tensors, Path(folder) / f"{ours.args.world_size}.safetensors")
