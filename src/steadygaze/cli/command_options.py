"""Options of commands: their panels, fields of dataclasses, help, and the options of every command."""

import inspect
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import typer
from rich.markup import escape

from steadygaze.cli.config_files import ConfigCommand
from steadygaze.cli.exit_codes import EXIT_CODES
from steadygaze.cli.output_checks import check_outputs
from steadygaze.core.arguments import option_name, options
from steadygaze.results.model_options import OPTIONAL, ModelOptions

F = TypeVar("F", bound=Callable[..., None])


def output_file(text: str) -> Path:
    """Parse the path of a file to write; refuse a name with a final slash."""
    if text.endswith(("/", os.sep)):
        raise typer.BadParameter(f"{text} names a folder; name a file")
    return Path(text)


RUNTIME_PANEL = "Runtime"
data_option = partial(typer.Option, rich_help_panel="Data")
model_option = partial(typer.Option, rich_help_panel="Model")
training_option = partial(typer.Option, rich_help_panel="Training")
output_option = partial(typer.Option, rich_help_panel="Output")
file_option = partial(output_option, metavar="PATH", parser=output_file)
"""An option that names a file to write."""
runtime_option = partial(typer.Option, rich_help_panel=RUNTIME_PANEL)


def config_option(config: type[Any], field: str, default: str | None = None) -> Any:
    """The option of a field of a configuration; `default` describes the default."""
    _, option, least = options(config)[field]
    return typer.Option(
        option_name(config, field),
        metavar=option.metavar,
        help=option.help,
        show_default=default or option.default or True,
        min=least,
        rich_help_panel=option.panel,
    )


def config_options(
    config: type[Any],
    argument: str = "settings",
    *,
    without: Collection[str] = (),
    build: Callable[..., Any] = dict,
    **descriptions: str,
) -> Callable[[F], F]:
    """Add the options of a settings class to a command, which receives what `build` makes of them as an argument.

    `without`: fields that the command does not have.  `descriptions`: field -> description of its default, if the
    command has another.
    """
    defaults = {field.name: field.default for field in fields(config)}
    listed = {name: entry for name, entry in options(config).items() if name not in without}
    several = {name for name, (kind, _, _) in listed.items() if get_origin(kind) is tuple}
    added = {}
    for name, (kind, option, _) in listed.items():
        required, default = defaults[name] is MISSING, defaults[name]
        if name in several:
            kind, default = str if option.comma else list[str], None
            kind = kind if required else kind | None
        elif get_origin(kind) is UnionType:  # a mapping can be passed in Python only
            kind = Union[tuple(part for part in get_args(kind) if get_origin(part) is not dict)]  # noqa: UP007
        annotation = Annotated[kind, config_option(config, name, descriptions.get(name))]  # type: ignore[valid-type]
        added[name] = annotation, inspect.Parameter.empty if required else default

    def collect(own: dict[str, Any], _: dict[str, Any]) -> Any:
        values = {name: _items(value, defaults[name]) if name in several else value for name, value in own.items()}
        return build(**values)

    return lambda command: with_options(command, argument, added, collect)


def _items(value: str | list[str] | None, default: Any) -> Any:
    """Several values, or one with commas, as a tuple; the default if there is none."""
    if isinstance(value, str):
        return tuple(item.strip() for item in value.split(","))
    return tuple(value) if value else default


def with_options(
    command: F,
    argument: str,
    added: Mapping[str, tuple[Any, Any]],
    collect: Callable[[dict[str, Any], dict[str, Any]], Any],
) -> F:
    """Replace an argument of a command by options, name -> (annotation, default)."""
    kind = inspect.Parameter.KEYWORD_ONLY
    new = [inspect.Parameter(n, kind, default=d, annotation=a) for n, (a, d) in added.items()]
    own = [p.replace(kind=kind) for p in inspect.signature(command).parameters.values()]
    position = next(i for i, parameter in enumerate(own) if parameter.name == argument)
    parameters = [*own[:position], *new, *own[position + 1 :]]

    def wrapper(**values: Any) -> None:
        collected = {name: values.pop(name) for name in added}
        command(**values, **{argument: collect(collected, values)})

    wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper  # type: ignore[return-value]


def options_of(argument: str, group: type[Any]) -> Callable[[F], F]:
    """Add the fields of a dataclass to the options of a command, which receives an instance as an argument."""
    return lambda command: with_options(command, argument, _fields(group), lambda own, _: group(**own))


def _fields(group: type[Any]) -> dict[str, tuple[Any, Any]]:
    """Name -> (annotation, default) of each field of a dataclass."""
    hints, required = get_type_hints(group, include_extras=True), inspect.Parameter.empty
    defaults = {field.name: required if field.default is MISSING else field.default for field in fields(group)}
    return {name: (hints[name], default) for name, default in defaults.items()}


def option_words(config: type[Any], values: Mapping[str, Any]) -> list[str]:
    """These values as words of a command."""
    words = []
    for name, value in values.items():
        comma, flag = options(config)[name][1].comma, option_name(config, name)
        if value is True:
            words.append(flag)
            continue
        items = value if isinstance(value, tuple) else (value,)
        words += [word for item in ([",".join(items)] if comma else items) for word in (flag, str(item))]
    return words


@dataclass(frozen=True)
class Common:
    """Options that most commands have; `common_options` names those that a command lacks."""

    data_dir: Annotated[
        Path | None,
        data_option(
            "--data-dir",
            metavar="DIR",
            help="Folder of published datasets, NAME/SPLIT.parquet.",
            show_default="$STEADYGAZE_DATA",
        ),
    ] = None
    device: Annotated[str, runtime_option("--device", help="auto, cpu, cuda or mps.")] = "auto"
    batch_size: Annotated[
        int | None,
        runtime_option(
            "--batch-size",
            min=1,
            metavar="N",
            help="Texts per batch.",
            show_default="32 to train (8 for small datasets), 256 to audit, else 128",
        ),
    ] = None
    config: Annotated[
        Path | None,
        runtime_option("--config", metavar="FILE", help="Options from a TOML file, by name."),
    ] = None
    save_config: Annotated[
        Path | None,
        runtime_option("--save-config", metavar="FILE", help="Write the options of this call to a TOML file."),
    ] = None
    seed: Annotated[int, runtime_option("--seed", min=0, metavar="N", help="Random seed.")] = 0
    json: Annotated[bool, output_option("--json", help="Print the result as JSON.")] = False
    verbose: Annotated[bool, output_option("--verbose", "-v", help="Print details.")] = False
    quiet: Annotated[bool, output_option("--quiet", "-q", help="Print only the result.")] = False

    @property
    def batch(self) -> int:
        """Texts per batch of predictions and explanations."""
        from steadygaze.models.inference import BATCH

        return self.batch_size or BATCH


class HelpPanelCommand(ConfigCommand):
    """A command that shows --help in the panel of the runtime options."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.rich_help_panel = RUNTIME_PANEL
        return option


def command_help(*examples: str, exit_codes: str = EXIT_CODES) -> dict[str, Any]:
    """Return the arguments of `app.command`: the class, and an epilog of examples and exit codes."""
    commands = [f"  steadygaze {example}" for example in examples]
    paragraphs = ["[bold]Examples:[/bold]", *map(escape, commands), f"[bold]Exit codes:[/bold] {exit_codes}"]
    return {"cls": HelpPanelCommand, "epilog": "\n\n".join(paragraphs)}


def common_options(*unused: str) -> Callable[[F], F]:
    """Add the fields of `Common` to the options of a command, which receives them as the argument `common`.

    `unused`: the fields that have no effect on the command; they are not among its options.
    """

    def collect(own: dict[str, Any], others: dict[str, Any]) -> Common:
        common = Common(**own)
        check_outputs(others, common.data_dir)
        return common

    added = _fields(Common)
    for name in unused:
        del added[name]
    return lambda command: with_options(command, "common", added, collect)


def model_options(*optional: str) -> Callable[[F], F]:
    """Add the options of `ModelOptions` to a command, which receives them as the argument `options`.

    `optional`: those of OPTIONAL that the command has.
    """
    return config_options(ModelOptions, "options", without={*OPTIONAL} - {*optional}, build=ModelOptions)
