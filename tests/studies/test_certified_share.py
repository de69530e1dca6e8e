"""Certified share: the selection on validation texts, and the table of docs/how-to/certify.md."""

import json
from pathlib import Path

from result_pages import ROOT, missing
from studies.certified_share.table import table

RECORDS, PAGE = ROOT / "studies" / "records", ROOT / "docs" / "how-to" / "certify.md"


def test_the_page_has_rows_of_the_records():
    page, certified = PAGE.read_text("utf-8"), {}
    for name in ("certified_share", "certified_share_cnn"):
        for line in table([RECORDS / f"{name}.jsonl"]).splitlines()[2:]:
            row, _, f1, _, share, _, right, _, _ = line.strip("| ").replace("*", "").split(" | ")
            certified[name, row] = f"| {f1} | {share} | {right} |", share.removesuffix(" %")
    rows = ["vanilla, no groups", "vanilla", "synonym-augmentation, weight 3, share 1"]
    assert [row for row in rows if certified["certified_share", row][0] not in page] == []
    cnn = [certified["certified_share_cnn", row][1] for row in rows]
    assert "certifies {}, {} and {} %".format(*cnn) in page


def test_the_page_has_the_attack_of_the_records():
    (record,) = map(json.loads, (RECORDS / "substitution_attack.jsonl").read_text("utf-8").splitlines())
    for search in ("greedy", "beam 5"):
        broken, changed = record[f"broken, {search}"], record[f"changed, {search}"]
        sentence = (
            f"breaks {broken} of {record['certified']} certified texts, and changes the label of {changed} of "
            f"{record['counterexamples']} texts with a counterexample ({record['texts']} texts"
        )
        assert not missing([sentence], PAGE)


def test_validation_texts_select_the_row_and_test_texts_do_not(tmp_path: Path):
    names = ("certified", "certified, not vacuous", "certified and right", "can change", "top-5")
    values = {
        "vanilla, no groups": (0.80, 0.2, 0.9),
        "a": (0.795, 0.6, 0.5),
        "b": (0.70, 0.9, 0.9),
        "c": (0.8, 0.5, 0.9),
    }
    records = [
        {
            "encoder": "average",
            "row": row,
            "seed": 0,
            "validation": {"macro-f1": f1, "certified": validation},
            "test": dict.fromkeys(names, test) | {"macro-f1": f1},
        }
        for row, (f1, validation, test) in values.items()
    ]
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    bold = [line for line in table([tmp_path / "records.jsonl"]).splitlines() if "**" in line]
    assert len(bold) == 1
    assert "**a**" in bold[0]
