"""CUDA graphs of a function: captured once for each shape of its inputs, and then replayed without Python.

A small network spends most of a step in Python and in launching kernels; a graph launches all of them at once.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class _Capture:
    graph: torch.cuda.CUDAGraph
    inputs: list[Tensor]
    outputs: Any


class CapturedFunction:
    """A function of tensors on a device; on a GPU it becomes a graph at the second call with the same shapes.

    The function must not read values from the device.  Its outputs are valid until the next call.
    `report` gets the reason if a capture fails.
    `graphs`: use CUDA graphs; None: on CUDA.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        device: torch.device,
        report: Callable[[str], None] = lambda reason: None,
        graphs: bool | None = None,
    ) -> None:
        self.function, self.device, self.report = function, device, report
        self.captures: dict[Any, _Capture | None] = {}
        self.uses_graphs = device.type == "cuda" if graphs is None else graphs

    def __call__(self, *arguments: Any) -> Any:
        """Call the function; tensors are copied to the device, and other arguments are constants of a graph."""
        shape = tuple(value.shape if isinstance(value, Tensor) else value for value in arguments)
        if shape in self.captures and self.captures[shape] is None and self.uses_graphs:
            self.captures[shape] = self._capture(arguments)
        capture = self.captures.setdefault(shape, None)  # the first call allocates memory and compiles kernels
        if capture is None:
            return self.function(*self._on_device(arguments))
        for static, value in zip(capture.inputs, _tensors(arguments), strict=True):
            static.copy_(value, non_blocking=True)
        capture.graph.replay()
        return capture.outputs

    def _capture(self, arguments: tuple[Any, ...]) -> _Capture | None:
        """The graph of a call; None, and no graphs from then on, if the device or the function does not support it."""
        pool = next((other.graph.pool() for other in self.captures.values() if other is not None), None)
        copies = self._on_device(arguments)
        try:
            graph = torch.cuda.CUDAGraph()
            with undone_if_it_fails(graph, self.device), torch.cuda.graph(graph, pool=pool):
                outputs = self.function(*copies)
        except RuntimeError as error:  # also a lack of memory
            self.use_no_graphs(error)
            return None
        return _Capture(graph, _tensors(copies), outputs)

    def use_no_graphs(self, error: RuntimeError) -> None:
        """Call the function from now on.  No earlier graph is used: it draws from the generator before the error."""
        self.uses_graphs, self.captures = False, dict.fromkeys(self.captures)
        is_memory = isinstance(error, torch.cuda.OutOfMemoryError)
        reason = "too little memory" if is_memory else str(error).partition("\n")[0]
        self.report(f"trains without CUDA graphs: {reason}")

    def _on_device(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(value.to(self.device, copy=True) if isinstance(value, Tensor) else value for value in arguments)


def _tensors(arguments: tuple[Any, ...]) -> list[Tensor]:
    return [value for value in arguments if isinstance(value, Tensor)]


@contextmanager
def undone_if_it_fails(graph: torch.cuda.CUDAGraph, device: torch.device) -> Iterator[None]:
    """Restore the stream and the generator after a capture that fails.

    torch 2.11 does neither: later operations run in the stream of the capture, and random numbers are an error.
    """
    if device.type != "cuda":
        yield
        return
    stream = torch.cuda.current_stream(device)
    try:
        yield
    except RuntimeError:
        torch.cuda.set_stream(stream)
        graph.reset()
        generator = torch.cuda.default_generators[stream.device_index]
        state = torch.Generator(stream.device)
        state.set_state(generator.get_state())
        generator.graphsafe_set_state(state.graphsafe_get_state())
        raise
