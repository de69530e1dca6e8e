"""Commands about the audited model and its data, for the manifest, the page and the advice.

The command that repeats an audit depends only on the settings and the policy; options that do not change the numbers
(--bundle, --html, --device) are left out.  An audit in Python has no settings: its commands have placeholders.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from steadygaze.core.arguments import option_name, options
from steadygaze.data.corpora import CORPORA
from steadygaze.results.audit_config import AuditConfig
from steadygaze.results.model_options import ModelOptions
from steadygaze.results.policy import POLICY_FILE, Policy, Requirement
from steadygaze.results.report import Report

COLUMNS = ("text", "label", "drop_empty")
"""Settings of the columns, which commands about a model and data share."""
PLACEHOLDERS = {"MODEL", "DATA", "TRAINING_DATA", "TABLE", "DIR"}
OUTPUTS = tuple(field.name for field in fields(ModelOptions) if field.name not in ("attention", "threshold"))
"""Settings of the model that all of these commands have."""


@dataclass(frozen=True)
class AuditCommands:
    """The words of commands.

    >>> AuditCommands().audit(limit=400)
    ('steadygaze', 'audit', 'MODEL', '--data', 'DATA', '--limit', '400')
    >>> AuditCommands({"model": "./m", "data": "./d.csv", "label": "stars"}).train("--out", "DIR")
    ('steadygaze', 'train', 'TRAINING_DATA', '--label', 'stars', '--out', 'DIR')
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    """Fields of AuditConfig with portable paths; empty: not known."""

    def audit(self, **changes: Any) -> tuple[str, ...]:
        """The audit with other settings."""
        return rerun_command({"model": "MODEL", "data": "DATA", **self.settings, **changes})

    def evaluate(self) -> tuple[str, ...]:
        words = ["evaluate", self._get("model", "MODEL"), "--data", self._get("data", "DATA")]
        return ("steadygaze", *words, *self._options("split", "sentences", *COLUMNS, *OUTPUTS))

    def fit_explainer(self, *last: str) -> tuple[str, ...]:
        words = ["fit-explainer", self._get("model", "MODEL"), "--data", self._training_data]
        return ("steadygaze", *words, *self._options(*COLUMNS, *OUTPUTS), *last)

    def train(self, *last: str) -> tuple[str, ...]:
        return ("steadygaze", "train", self._training_data, *self._options("sentences", *COLUMNS), *last)

    @property
    def _training_data(self) -> str:
        """The training data, or the corpus of the audited split."""
        data = self._get("data", "")
        return self._get("train", data if data.partition(":")[0] in CORPORA else "TRAINING_DATA")

    def _get(self, name: str, default: str) -> str:
        return str(self.settings.get(name) or default)

    def _options(self, *names: str) -> list[str]:
        return _changed({name: self.settings[name] for name in names if name in self.settings})


def complete_commands(report: Report, settings: Mapping[str, Any]) -> list[str]:
    """The commands in the advice that run as they are, in the working folder; none if a file is elsewhere.

    If commands differ only in the number of texts, the one with the most texts replaces the others.
    """
    paths = [str(settings[name]) for name in ("model", "data")]
    if not all(Path(path).exists() for path in paths if path.startswith(".")):
        return []
    commands = [advice.command for verdict in report.verdicts for advice in verdict.advice if advice.command]
    complete = [
        words for words in commands if PLACEHOLDERS.isdisjoint(part for word in words for part in word.split("="))
    ]
    most: dict[tuple[str, ...], tuple[int, tuple[str, ...]]] = {}
    for words in complete:
        limit, others = _limit(words)
        most[others] = max(most.get(others, (limit, words)), (limit, words))
    return list(dict.fromkeys(shlex.join(most[_limit(words)[1]][1]) for words in complete))


def _limit(words: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """The number of texts, and the command without it."""
    if "--limit" not in words:
        return 0, words
    place = words.index("--limit")
    return int(words[place + 1]), (*words[: place + 1], *words[place + 2 :])


def rerun_command(settings: Mapping[str, Any], policy: Policy | None = None) -> tuple[str, ...]:
    """The arguments of the command line.

    >>> rerun_command({"model": "./m", "data": "sst2", "k": 5, "seed": 0, "thorough": True})
    ('steadygaze', 'audit', './m', '--data', 'sst2', '--k', '5', '--thorough')
    """
    words = ["steadygaze", "audit", str(settings["model"]), "--data", str(settings["data"])]
    others = {name: value for name, value in settings.items() if name not in ("model", "data")}
    return (*words, *_changed(others), *_requirements(policy))


def _changed(settings: Mapping[str, Any]) -> list[str]:
    """The options whose value is not the default, in the order of the fields."""
    words = []
    for item in fields(AuditConfig):
        value, default = (
            list(entry) if isinstance(entry, tuple) else entry for entry in (settings.get(item.name), item.default)
        )
        if value not in (default, None):
            words += _arguments(item.name, value)
    return words


def _arguments(name: str, value: Any) -> list[str]:
    flag = "--import" if name == "imports" else option_name(AuditConfig, name)
    listed = options(AuditConfig)
    if value is True:
        return [flag]
    if name in listed and listed[name][1].comma:
        return [flag, ",".join(map(str, value))]
    return [word for item in (value if isinstance(value, list) else [value]) for word in (flag, str(item))]


def _requirements(policy: Policy | None) -> list[str]:
    """One option for each requirement; --policy if an option cannot express them."""
    if policy is None:
        return []
    if policy.verdicts or any(item.interval or item.why for item in policy.requirements):
        return ["--policy", POLICY_FILE]
    return [word for item in policy.requirements for word in ("--require", _rule(item))]


def _rule(item: Requirement) -> str:
    """The requirement, with all digits of its limit."""
    return f"{item.measure}{f'[{item.explainer}]' if item.explainer else ''}{item.op}{item.limit!r}"
