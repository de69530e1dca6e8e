"""Options of a command from the fields of a settings class or of a dataclass."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from steadygaze.core.arguments import option_name, options

F = TypeVar("F", bound=Callable[..., None])


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


def config_options(config: type[Any], **descriptions: str) -> Callable[[F], F]:
    """Add the options of a settings class to a command, which receives their values as the argument `settings`.

    `descriptions`: field -> description of its default, if the command has another.
    """
    defaults = {field.name: field.default for field in fields(config)}
    added = {}
    for name, (kind, option, _) in options(config).items():
        many = isinstance(defaults[name], tuple)
        hint = (str | None if option.comma else list[str] | None) if many else kind
        annotation = Annotated[hint, config_option(config, name, descriptions.get(name))]  # type: ignore[valid-type]
        added[name] = annotation, None if many else defaults[name]

    def collect(own: dict[str, Any], _: dict[str, Any]) -> dict[str, Any]:
        return {name: _config_value(value, defaults[name]) for name, value in own.items()}

    return lambda command: with_options(command, "settings", added, collect)


def _config_value(value: Any, default: Any) -> Any:
    """The value of a field: an option without a value has the default, several values are a tuple."""
    if not isinstance(default, tuple):
        return value
    items = [item.strip() for item in value.split(",")] if isinstance(value, str) else value
    return tuple(items) if items else default


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


def option_group(group: type[Any]) -> dict[str, tuple[Any, Any]]:
    """Name -> (annotation, default) of each field of a dataclass."""
    hints, required = get_type_hints(group, include_extras=True), inspect.Parameter.empty
    defaults = {field.name: required if field.default is MISSING else field.default for field in fields(group)}
    return {name: (hints[name], default) for name, default in defaults.items()}
