"""The command that repeats an audit, made from its settings and its policy alone: the same audit has the same command.

It is what a manifest and a page show.  What does not change the numbers (--out, --html, --device) is not part of it.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from steadygaze.audit.manifest import POLICY
from steadygaze.audit.run import Order
from steadygaze.report.policy import Policy, Requirement

FLAGS = {"explainers": "--explainer"}
"""Options whose names are not those of the settings."""


def command(settings: Mapping[str, Any], policy: Policy | None = None) -> tuple[str, ...]:
    """Words of the command line.

    >>> command({"model": "./m", "data": "sst2", "k": 5, "seed": 0, "thorough": True})
    ('steadygaze', 'audit', './m', '--data', 'sst2', '--k', '5', '--thorough')
    """
    words = ["steadygaze", "audit", str(settings["model"]), "--data", str(settings["data"])]
    for one in fields(Order):
        value = settings.get(one.name)
        usual = None if one.default is MISSING else one.default
        if one.name not in ("model", "data") and _plain(value) not in (_plain(usual), None):
            words += _option(one.name, value)
    return (*words, *_required(policy))


def _option(name: str, value: Any) -> list[str]:
    flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
    if value is True:
        return [flag]
    if name == "classes":
        return [flag, ",".join(map(str, value))]
    return [word for one in (value if isinstance(value, list | tuple) else [value]) for word in (flag, str(one))]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _required(policy: Policy | None) -> list[str]:
    """Requirements one by one; a policy that says more is in its file."""
    if policy is None:
        return []
    if policy.verdicts or any(one.interval or one.why for one in policy.requirements):
        return ["--policy", POLICY]
    return [word for one in policy.requirements for word in ("--require", _written(one))]


def _written(one: Requirement) -> str:
    """With every digit of its limit."""
    return f"{one.measure}{f'[{one.explainer}]' if one.explainer else ''}{one.op}{one.limit!r}"
