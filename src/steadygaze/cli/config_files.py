"""Options in a TOML file: `--config` reads them, and `--save-config` writes them.

    data = "reviews.csv"          # arguments by their names
    out = "model"                 # options by their names, without the dashes
    epochs = 10
    text = ["premise", "hypothesis"]
    [set]                         # KEY=VALUE options: a table, or a list of strings
    hidden = 64

Options on the command line take precedence.  Paths are relative to the working directory.  A file cannot name code: a
model MODULE:NAME is imported only from the command line.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from steadygaze.cli.output_checks import check_outputs
from steadygaze.core.arguments import names_object
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.output_paths import write_output
from steadygaze.core.untrusted_files import read_text

OWN = ("config", "save_config", "imports", "help")
"""Parameters that a file does not contain."""


MODELS = ("MODEL", "MODEL...", "BLACKBOX")
"""Metavars of parameters that can be a model MODULE:NAME."""


HEADER = "# Options of steadygaze {}.\n"


class ConfigCommand(TyperCommand):
    """A command with --config and --save-config."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        if not ctx.resilient_parsing:
            _refuse_repeated(order)
        path = values.get("config")
        if path is not None and not ctx.resilient_parsing:
            ctx.default_map = read_config(Path(path), self.params)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        refuse_code(ctx)
        path = ctx.params.get("save_config")
        if path is None:
            return super().invoke(ctx)
        check_outputs(ctx.params, ctx.params.get("data_dir"))
        before = read_text(path) if path.exists() else None
        write_config(path, ctx)
        try:
            return super().invoke(ctx)
        except UserError:  # the options were refused
            path.unlink() if before is None else write_output(path, before, replace=True)
            raise


def _refuse_repeated(options_in_order: Sequence[Any]) -> None:
    """Refuse an option of one value that was given several times: only the last value would count."""
    for option in dict.fromkeys(options_in_order):
        is_plain_flag = getattr(option, "is_flag", False) and not option.secondary_opts
        if (
            option.param_type_name == "argument"
            or option.multiple
            or is_plain_flag
            or options_in_order.count(option) < 2
        ):
            continue
        name = "/".join([max(option.opts, key=len), *option.secondary_opts])
        hint = f", as in {name} A,B" if "," in str(option.metavar) else ""
        raise UserError(
            f"{name} is given {options_in_order.count(option)} times, and takes one value: give it once{hint}"
        )


def refuse_code(ctx: Any) -> None:
    """Refuse a model MODULE:NAME, which would be imported, unless it was typed on the command line."""
    for parameter in ctx.command.params:
        source = ctx.get_parameter_source(parameter.name)
        if parameter.metavar not in MODELS or source is None or source.name == "COMMANDLINE":
            continue
        value = ctx.params.get(parameter.name)
        for item in value if isinstance(value, list | tuple) else [value]:
            if names_object(item):
                raise UserError(
                    f"{config_key(parameter)} = {item!r:.80} would import code: type MODULE:NAME on the command line, "
                    "a configuration file cannot name code"
                )


def read_config(path: Path, parameters: list[Any]) -> dict[str, Any]:
    """Parameter -> value, from the keys of a file."""
    import tomllib

    from steadygaze.core.untrusted_files import read_text

    try:
        values = tomllib.loads(read_text(path))
    except (ValueError, RecursionError) as error:  # also a UserError of read_text
        raise error if isinstance(error, UserError) else UserError(f"{path} is not valid TOML: {error}") from None
    known = {config_key(parameter): parameter for parameter in parameters if parameter.name not in OWN}
    for key in values:
        if key not in known:
            raise UserError(f"{path}: {unknown('option', key, known)}")
    return {known[key].name: _value(path, key, value, known[key]) for key, value in values.items()}


def write_config(path: Path, ctx: Any) -> None:
    """Write the options of the command line and of --config."""
    lines = [HEADER.format(ctx.info_name)]
    for parameter in ctx.command.params:
        value = ctx.params.get(parameter.name)
        source = ctx.get_parameter_source(parameter.name)
        if (
            parameter.name not in OWN
            and value not in (None, [], ())
            and source is not None
            and source.name != "DEFAULT"
        ):
            lines.append(f"{config_key(parameter)} = {_toml(value)}\n")
    write_output(path, "".join(lines))


def config_key(parameter: Any) -> str:
    """The name of an argument, or the long name of an option without dashes."""
    if parameter.param_type_name == "argument":
        return str(parameter.name)
    return max(parameter.opts, key=len).lstrip("-")  # type: ignore[no-any-return]


def _value(path: Path, key: str, value: Any, parameter: Any) -> Any:
    """The value of a parameter: scalars, or a list if it takes several."""
    several = parameter.multiple if parameter.param_type_name == "option" else False
    several = several or parameter.nargs != 1
    if isinstance(value, Mapping) and several:
        value = [f"{name}={json.dumps(item, ensure_ascii=False)}" for name, item in value.items()]
    items = value if isinstance(value, list) else [value]
    if (isinstance(value, list) and not several) or not all(isinstance(v, str | int | float) for v in items):
        kind = "a string, a number or a list of them" if several else "a string, a number, true or false"
        raise UserError(f"{path}: {key} must be {kind}, found {value!r:.80}")
    return items if several else value


def _toml(value: Any) -> str:
    """A value as TOML, which has the strings, numbers and lists of JSON."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    plain = value if isinstance(value, bool | int | float) else str(value)
    return json.dumps(plain, ensure_ascii=False).replace("\x7f", "\\u007f")
