"""A GPU gives the results of the CPU.  Without a GPU, nothing is tested."""

import math
from pathlib import Path

import pytest
import torch

import steadygaze as sg
from steadygaze.data.planted.reviews import planted_reviews
from steadygaze.results.report import Report

ROUNDING, TURNED = 1e-6, 1e-4
"""TURNED: of rank correlations and of PGD, which follows the signs of gradients.  Each device has its own order of two
weights that are equal but for rounding, and its own sign of a gradient that is zero but for rounding."""
EXPLAINERS = "attention", "gradient", "integrated-gradients", "leave-one-out"


def rows(report: Report) -> dict[tuple[str, str], tuple[float, int]]:
    return {(row.measure, str(sorted(row.settings.items()))): (row.value, row.n) for row in report.rows}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize(("technique", "explainers"), [("vanilla", EXPLAINERS), ("a2r", ())])
def test_an_audit_gives_the_same_results_on_a_gpu(technique: str, explainers: tuple[str, ...], tmp_path: Path) -> None:
    splits = planted_reviews(0, sizes=(300, 60, 40))
    train, test = splits["train"], splits["test"]
    model = sg.TextClassifier(technique=technique, epochs=3, random_state=0, device="cpu")
    model.fit([example.text for example in train], [example.label for example in train]).save(tmp_path / "model")
    texts, labels, marked = ([getattr(example, part) for example in test] for part in ("text", "label", "rationales"))
    cpu_rows, gpu_rows = (
        rows(
            sg.audit(
                sg.load(tmp_path / "model", device=device),
                texts,
                labels,
                rationales=marked,
                explainers=explainers,
                sample=8,
            )
        )
        for device in ("cpu", "cuda")
    )
    assert cpu_rows.keys() == gpu_rows.keys()
    assert len(cpu_rows) > 40
    different = [
        (name, cpu_rows[name], gpu_rows[name])
        for name in cpu_rows
        if not close(name[0], cpu_rows[name], gpu_rows[name])
    ]
    assert not different, "\n".join(map(str, different))


def close(measure: str, number: tuple[float, int], other: tuple[float, int]) -> bool:
    if number[1] != other[1] or math.isnan(number[0]):
        return number[1] == other[1] and math.isnan(other[0])
    turned = measure.startswith("kendall") or measure.endswith("/pgd-attention")
    return abs(number[0] - other[0]) <= (TURNED if turned else ROUNDING)
