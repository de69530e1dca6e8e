"""The CLI reference, from the Typer commands."""

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.markup import render
from typer.main import get_command

from markdown_text import code, table
from steadygaze.cli import COMMANDS, app


def pages(_: Path) -> dict[str, str]:
    for module, _ in COMMANDS.values():
        import_module(f"steadygaze.cli.{module}")  # registers the command
    application = get_command(app)
    commands = dict(_commands(application, "steadygaze"))
    rows = [(f"[`{name}`]({_file(name)})", _first(command.help)) for name, command in commands.items()]
    index = [
        "# Command line\n",
        "`steadygaze COMMAND --help` prints the same options.\n",
        table(("command", "purpose"), rows),
        "## Exit codes\n",
        _exit_codes(application.epilog),
    ]
    return {
        "cli/index.md": "\n".join(index),
        **{f"cli/{_file(name)}": _page(name, command) for name, command in commands.items()},
    }


def _commands(group: Any, name: str) -> list[tuple[str, Any]]:
    """Name and command, without the groups."""
    if not hasattr(group, "commands"):
        return [(name, group)]
    return [pair for key, command in group.commands.items() for pair in _commands(command, f"{name} {key}")]


def _page(name: str, command: Any) -> str:
    context = command.make_context(name, [], resilient_parsing=True)
    parameters = [p for p in command.get_params(context) if not getattr(p, "hidden", False)]
    arguments = [p for p in parameters if p.param_type_name == "argument"]
    options = [p for p in parameters if p.param_type_name == "option"]
    usage = " ".join([name, "[OPTIONS]", *(_record(p, context)[0].split(" <")[0] for p in arguments)])
    examples = re.findall(r"^  (steadygaze .*)$", render(command.epilog or "").plain, re.MULTILINE)
    parts = [f"# {name.removeprefix('steadygaze ')}\n", f"{command.help}\n", f"```text\n{usage}\n```\n"]
    if examples:
        parts.append("## Examples\n\n```text\n" + "\n".join(examples) + "\n```\n")
    if arguments:
        rows = [_record(p, context)[:2] for p in arguments]
        parts += [
            "## Arguments\n",
            table(("argument", "meaning"), [(code(n.split(" <")[0]), text) for n, text in rows]),
        ]
    for panel in sorted(dict.fromkeys(p.rich_help_panel or "Other" for p in options), key=_panel_order):
        records = [_record(p, context) for p in options if (p.rich_help_panel or "Other") == panel]
        rows = [(code(option), text, value) for option, text, value in records]
        parts += [f"## {panel} options\n", table(("option", "meaning", "default"), rows)]
    return "\n".join([*parts, "## Exit codes\n", _exit_codes(command.epilog or "")])


def _record(parameter: Any, context: Any) -> tuple[str, str, str]:
    """Names and value, meaning, and default with the accepted range, as the help prints them."""
    names, text = parameter.get_help_record(context)
    meaning, _, bracket = text.partition("  [")
    limits = re.search(r"(?:; )?([\d.]*<?=?x[<>]=?[\d.]+)\]$", bracket)
    value = bracket.removesuffix("]") if limits is None else bracket[: limits.start()]
    value = value.removeprefix("default: ")
    value = value[1:-1] if value.startswith("(") and value.endswith(")") else value
    if getattr(parameter, "is_flag", False) and not bracket and parameter.name != "help":
        value = "off"
    return names, meaning, value + (f" ({limits[1].replace('<=', ' ≤ ').replace('>=', ' ≥ ')})" if limits else "")


def _panel_order(panel: str) -> int:
    """The panels that every command has come last."""
    return ("Output", "Runtime", "Other").index(panel) if panel in ("Output", "Runtime", "Other") else -1


def _exit_codes(epilog: str) -> str:
    text = render(epilog).plain.split("Exit codes:")[-1].strip()
    codes = [re.match(r"(\d+) (.*)", item.strip(), re.DOTALL) for item in text.split(";")]
    return table(("code", "meaning"), sorted((match.groups() for match in codes if match), key=_number)) if text else ""


def _file(name: str) -> str:
    return name.removeprefix("steadygaze ").replace(" ", "-") + ".md"


def _first(text: str | None) -> str:
    return (text or "").split("\n")[0]


def _number(row: Sequence[str]) -> int:
    return int(row[0])
