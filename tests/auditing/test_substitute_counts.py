"""The note of a report on how many words of the texts have a substitute."""

from pathlib import Path

import steadygaze as sg
from estimator.tiny import LABELS, TEXTS, fitted
from steadygaze.data.verified_tables import Verification, verified_text
from steadygaze.results.note import NoteCode

TABLE = {"good": ["fine"], "fine": ["good"], "film": ["plot"]}


def test_a_report_counts_texts_by_substitutes(tmp_path: Path) -> None:
    """12 texts have `good` and `fine`, 12 neither; one of each kind has `film`."""
    file = tmp_path / "table.jsonl"
    file.write_text(verified_text(TABLE, Verification("abc", 0.9, "def")))
    for synonyms, verified in ((TABLE, False), (file, True)):
        report = sg.audit(fitted(), TEXTS, LABELS, synonyms=synonyms, explainers=["attention"])
        (note,) = [item for item in report.notes if item.code == NoteCode.SUBSTITUTES]
        assert dict(note.fields) == {"verified": verified, "texts": 24, "without": 11, "few": 12, "many": 1}
        assert "in 24 texts: 11 have none, 12 one or two, 1 three or more" in str(note)
        assert ("is unverified" in str(note)) is not verified


def test_an_audit_without_a_table_has_no_such_note() -> None:
    report = sg.audit(fitted(), TEXTS, LABELS, explainers=["attention"])
    assert all(item.code != NoteCode.SUBSTITUTES for item in report.notes)
