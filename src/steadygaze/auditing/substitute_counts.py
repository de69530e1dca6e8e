"""How many words of each text have a substitute, and whether their table is verified: a note of the report."""

import torch

from steadygaze.properties.audit_case import AuditCase
from steadygaze.results.note import Note, NoteCode, note

ENOUGH = 3
"""Substitutes of a text that the probe 3-synonyms needs."""


def substitute_counts(case: AuditCase) -> tuple[Note, ...]:
    """The number of texts without, with one or two, and with at least ENOUGH words that have a substitute."""
    if not case.substitutions:
        return ()
    synonyms, _ = next(iter(case.substitutions.values()))
    table = synonyms.to(case.model.device)
    numbers = torch.cat([table.swappable(batch.ids, batch.mask).sum(-1).cpu() for _, batch in case.batches()])
    without, many = int((numbers == 0).sum()), int((numbers >= ENOUGH).sum())
    return (
        note(
            NoteCode.SUBSTITUTES,
            verified=synonyms.origin == "verified",
            texts=len(case),
            without=without,
            few=len(case) - without - many,
            many=many,
        ),
    )
