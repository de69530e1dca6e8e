"""The options of a command: from the fields of a configuration, from a TOML file; checks of its outputs and labels.

`--config` reads options from a TOML file, and `--save-config` writes them to one:

    data = "reviews.csv"          # arguments by their names
    out = "model"                 # options by their names, without the dashes
    epochs = 10
    text = ["premise", "hypothesis"]
    [set]                         # KEY=VALUE options: a table, or a list of strings
    hidden = 64

Options on the command line take precedence.  Paths are relative to the working directory.  A file cannot name code: a
model MODULE:NAME is imported only from the command line.  No output overwrites an input, and no two outputs are the
same.
"""

import inspect
import json
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand

from steadygaze.core.arguments import names_object, option_name, options
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.output_paths import check_file, check_folder, check_separate, write_output
from steadygaze.core.types import Label
from steadygaze.core.untrusted_files import read_text
from steadygaze.results.model_options import ModelOptions

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
    added = {}
    for name, (kind, option, _) in options(config).items():
        if name in without:
            continue
        many = isinstance(defaults[name], tuple)
        hint = (str | None if option.comma else list[str] | None) if many else kind
        annotation = Annotated[hint, config_option(config, name, descriptions.get(name))]  # type: ignore[valid-type]
        added[name] = annotation, None if many else defaults[name]

    def collect(own: dict[str, Any], _: dict[str, Any]) -> Any:
        return build(**{name: _config_value(value, defaults[name]) for name, value in own.items()})

    return lambda command: with_options(command, argument, added, collect)


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


LONGEST_PREFIX = 1000
"""Characters of an argument in which a path may begin."""
FOLDERS = ("out", "bundle", "teacher_cache")
OUTPUTS = ("html", "eraser", "out_file", "test_out", "save_config", *FOLDERS)
"""Options that name an output.  All others can name an input, except NO_INPUTS."""
NO_INPUTS = ("texts", "text", "label", "rationales", "sentences", "config")
"""Options that name no input, and `config`: `save_config` may replace its file."""


def check_outputs(values: Mapping[str, Any], data_dir: Path | None) -> None:
    """Refuse outputs that must not be written, before the command does any work."""
    others = [value for name, value in values.items() if name not in (*OUTPUTS, *NO_INPUTS)]
    inputs = [path for value in others for path in _paths(value, data_dir)]
    outputs = {name: Path(values[name]) for name in OUTPUTS if values.get(name) is not None}
    for name, path in outputs.items():
        if name in FOLDERS:
            check_folder(path, inputs)
        else:
            check_file(path, inputs, values.get("replace", False))
    check_separate({f"--{name.replace('_', '-')}": path for name, path in outputs.items()})


def _paths(value: Any, data_dir: Path | None) -> list[Path]:
    """Existing paths in an option: reviews.csv, biased=0.8:reviews.csv, synonyms=table.jsonl, sst2."""
    if isinstance(value, list | tuple):
        return [path for item in value for path in _paths(item, data_dir)]
    if not isinstance(value, str | Path):
        return []
    text = str(value)
    parts = [text, *(text[match.end() :] for match in re.finditer("[:=]", text[:LONGEST_PREFIX]))]
    base = data_dir or os.environ.get("STEADYGAZE_DATA")
    in_base = [os.path.join(base, part) for part in parts] if base else []
    return [Path(path) for part in (*parts, *in_base) if part and os.path.exists(path := os.path.expanduser(part))]


LARGEST_LABELED = 20 << 20
"""Larger files are not read twice: their labels are checked once the model is loaded."""
OTHER_TASKS = ("regression", "multi_label_classification")


def option_words(config: type[Any], values: Mapping[str, Any]) -> list[str]:
    """These values as words of a command."""
    words = []
    for name, value in values.items():
        comma, flag = options(config)[name][1].comma, option_name(config, name)
        items = value if isinstance(value, tuple) else (value,)
        words += [word for item in ([",".join(items)] if comma else items) for word in (flag, str(item))]
    return words


def check_label_values(
    model: str, options: ModelOptions, data: str, text: Sequence[str], label: str | None, drop_empty: bool
) -> None:
    """Raise the error that the loaded model would raise for an unknown label, before torch is imported.

    Do nothing if its classes or the labels are not known.
    """
    from steadygaze.data.corpora import CORPORA, load_corpus
    from steadygaze.data.text_checks import UnmatchedLabel, positions, unmatched_label

    if options.prompt is not None or options.target is not None:
        return
    try:
        file, known = Path(data).expanduser(), stored_classes(Path(model).expanduser())
    except RuntimeError:  # a home that does not exist: the loader reports it
        return
    names = known if known is None or not options.classes else list(options.classes)
    if (
        names is None
        or data.partition(":")[0] in CORPORA
        or not file.is_file()
        or file.stat().st_size > LARGEST_LABELED
    ):
        return
    corpus = load_corpus(file, text=tuple(text), label=label, drop_empty=drop_empty)
    labels = [example.label for split in corpus.splits.values() for example in split if example.label is not None]
    codes = positions(labels, names) if labels else []
    if isinstance(codes, UnmatchedLabel):
        raise unmatched_label(codes.label, labels, names, Path(model).name)


def stored_classes(folder: Path) -> list[Label] | None:
    """The classes in the config.json of a classifier; None: not a folder of a single-label classifier."""
    from steadygaze.core.untrusted_files import read_json

    try:
        values: Any = read_json(folder / "config.json")
    except (OSError, ValueError, UserError):  # the loader reports it
        return None
    if not isinstance(values, Mapping):
        return None
    if isinstance(values.get("classes"), list) and isinstance(values.get("technique"), str):
        return list(values["classes"])
    names, kinds = values.get("id2label"), values.get("architectures") or [""]
    if not isinstance(names, Mapping) or len(names) < 2 or values.get("problem_type") in OTHER_TASKS:
        return None
    if not str(kinds[0]).endswith("ForSequenceClassification") or not all(str(key).isdecimal() for key in names):
        return None
    return [str(names[key]) for key in sorted(names, key=int)]
