"""Read a report from an untrusted JSON file."""

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from steadygaze.core import __version__
from steadygaze.core.errors import UserError
from steadygaze.core.output_paths import GENERATOR
from steadygaze.core.untrusted_files import decode, parse_json, read_bytes
from steadygaze.results.evaluation import WrongPrediction
from steadygaze.results.explanation import Explanation, Explanations
from steadygaze.results.note import Note
from steadygaze.results.row import SCHEMA, Row, Shift, Verdict

R = TypeVar("R")
"""Report, which imports this module."""


def read_file(kind: type[R], path: Path) -> R:
    return parse(kind, read_bytes(path), path)


def parse(kind: type[R], content: bytes, name: object) -> R:
    """Parse a JSON file; `name` is the file in errors."""
    values = parse_json(decode(content, name), name, finite=True)
    try:
        return read(kind, values)
    except UserError as error:
        raise UserError(f"{name}: {error}") from None


def read(kind: type[R], values: Any) -> R:
    """Restore a report from the values of `Report.to_dict`."""
    if isinstance(values, Mapping):
        values = {key: value for key, value in values.items() if (key, value) not in GENERATOR.items()}
    _check_outline(kind, values)
    content: dict[str, Any] = {
        **values,
        "rows": tuple(map(Row.from_dict, values["rows"])),
        "notes": tuple(map(Note.from_dict, values["notes"])),
    }
    content.pop("schema")
    content["evaluation"] = _evaluation(values["evaluation"])
    try:
        report: Any = _adapter(cast(Any, kind)).validate_python(content)
    except ValidationError as error:
        raise UserError(_sentence(error)) from None
    failures = () if report.gate is None else report.gate.failures
    others = [verdict for verdicts in report.other_verdicts.values() for verdict in verdicts]
    for part, findings in (("verdicts", report.verdicts), ("other_verdicts", others), ("gate", failures)):
        try:
            _ = [finding.reason if isinstance(finding, Verdict) else finding.sentence for finding in findings]
        except (KeyError, ValueError, TypeError, AttributeError, IndexError):
            raise UserError(f"{part}: a note or an advice has not the fields of its code") from None
    try:
        _ = report.recommendation_text
    except (ValueError, TypeError):  # fewer than two explainers
        raise UserError("recommendation: it has not the fields of its choice") from None
    explanations = Explanations(map(_with_label, report.explanations))
    report = replace(report, shifts=tuple(map(_with_labels, report.shifts)), explanations=explanations)
    if report.evaluation is not None:
        errors = tuple(map(_with_error_labels, report.evaluation.errors))
        report = replace(report, evaluation=replace(report.evaluation, errors=errors))
    # A value that was coerced or dropped was not written by steadygaze: writing the report again shows it.
    written = _without_sentences(report.to_dict())
    if (place := _difference(written, _without_sentences({**GENERATOR, **values}))) is not None:
        raise UserError(f"{place} is not as steadygaze writes it")
    return cast(R, report)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _check_outline(kind: Any, values: Any) -> None:
    schema = values.get("schema") if isinstance(values, Mapping) else None
    if not isinstance(schema, int) or isinstance(schema, bool):
        raise UserError("this is not a steadygaze report: it has no schema number")
    if schema != SCHEMA:
        raise UserError(_other_schema(schema, values.get("versions")))
    if differing := {"schema", *(field.name for field in fields(kind))} ^ values.keys():
        raise UserError(f"the key {min(differing)!r} is {'unknown' if min(differing) in values else 'missing'}")
    for name in ("rows", "notes"):
        if not isinstance(values[name], list):
            raise UserError(f"{name}: found {values[name]!r:.80}; it must be a list")


def _other_schema(schema: int, versions: Any) -> str:
    """The error for a report of another version, with the fix."""
    version = versions.get("steadygaze") if isinstance(versions, Mapping) else None
    writer = f", written by steadygaze {version:.20}" if isinstance(version, str) else ""
    fix = "run the audit again" if schema < SCHEMA else "upgrade steadygaze to read it, or run the audit again"
    return f"the report has schema {schema}{writer}; steadygaze {__version__} reads schema {SCHEMA}: {fix}"


def _evaluation(values: Any) -> Any:
    """The values of an evaluation without those that depend on others."""
    if not isinstance(values, Mapping) or not isinstance(values.get("rows"), list):
        return values
    content = {key: value for key, value in values.items() if key not in (*GENERATOR, "per_class")}
    return {**content, "rows": tuple(map(Row.from_dict, values["rows"]))}


def _with_error_labels(error: WrongPrediction) -> WrongPrediction:
    return error if error.explanation is None else replace(error, explanation=_with_label(error.explanation))


def _with_labels(shift: Shift) -> Shift:
    return replace(shift, before=_with_label(shift.before), after=_with_label(shift.after))


def _with_label(e: Explanation) -> Explanation:
    """JSON keys are strings: if the label is a number, convert the classes to numbers."""
    if isinstance(e.label, str) or not all(str(name).lstrip("-").isdecimal() for name in e.probabilities):
        return e
    return replace(e, probabilities={int(name): p for name, p in e.probabilities.items()})


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return f"{place} is missing"
    message = str(first["msg"]).removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
    return f"{place}: found {first['input']!r:.80}; {message}"


SENTENCES = {"message": ("code", "kind", "choice"), "note": ("signature",), "why": ("reasons",)}
"""Key of a rendered sentence -> the keys of data that it is rendered from.  Another version may word it otherwise."""


def _without_sentences(values: Any) -> Any:
    if isinstance(values, list):
        return [_without_sentences(item) for item in values]
    if not isinstance(values, dict):
        return values
    rendered = {key for key, sources in SENTENCES.items() if not values.keys().isdisjoint(sources)}
    return {key: _without_sentences(item) for key, item in values.items() if key not in rendered}


def _difference(first: Any, second: Any, place: str = "") -> str | None:
    """The path of the first difference, such as rows.3.value."""
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        parts = [(key, first[key], second[key]) for key in first]
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        parts = [
            (str(i), first_part, second_part)
            for i, (first_part, second_part) in enumerate(zip(first, second, strict=True))
        ]
    else:
        return None if first == second and isinstance(first, bool) == isinstance(second, bool) else place or "it"
    paths = (
        _difference(first_part, second_part, f"{place}.{key}".lstrip(".")) for key, first_part, second_part in parts
    )
    return next((path for path in paths if path is not None), None)
