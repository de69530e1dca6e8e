"""Forward passes of an audit by property: a section of docs/results/oracles.md."""

from pathlib import Path

from steadygaze.properties import PROPERTIES
from studies.numbers import Number, Origin
from studies.tables import RECORDS, Records, markdown, read_records

FILE = RECORDS / "audit_cost.jsonl"
ORIGIN = Origin("86ddacbc", "python -m studies run audit_cost --out OUT")


def numbers() -> list[Number]:
    """model.property.texts and .passes, for each audited text; model.explainer."""
    result = []
    for record in read_records([FILE]):
        model = record["model"]
        result.append(ORIGIN.number(f"{model}.explainer", ", ".join(record["explainers"])))
        for name, counted in record["properties"].items():
            result += [ORIGIN.number(f"{model}.{name}.{kind}", counted[kind]) for kind in ("texts", "passes")]
        for kind in ("texts", "passes"):
            total = sum(counted[kind] for counted in record["properties"].values())
            result.append(ORIGIN.number(f"{model}.all.{kind}", total))
    return result


def lines_of(records: Records) -> list[list[str]]:
    heading = ["property", *(f"{record['model']}, {kind}" for record in records for kind in ("texts", "passes"))]
    rows = [
        [item.title, *(f"{record['properties'][name][kind]:.1f}" for record in records for kind in ("texts", "passes"))]
        for name, item in PROPERTIES.items()
    ]
    return [heading, *rows]


def table(records: list[Path] = [FILE]) -> str:  # noqa: B006
    return markdown(lines_of(read_records(records)))
