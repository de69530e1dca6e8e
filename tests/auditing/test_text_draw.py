"""The audited texts: all of a TextClassifier, and at most 100 of another model unless a limit is set."""

import json

import pytest

import steadygaze as sg
from commands import run
from properties.test_case import case_of
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.auditing import audit_progress
from steadygaze.auditing.audit_progress import AuditProgress
from steadygaze.auditing.prepare_case import TextDraw, draw_texts
from steadygaze.core.errors import SampleWarning, UserError
from steadygaze.results.audit_config import Runtime

TEXTS = [f"{word} film number {number}" for number in range(60) for word in ("good", "bad")]
LABELS = [text.split()[0] for text in TEXTS]
SENTENCE = "100 of 120 texts, drawn with seed 0"
OPTIONS = {"classes": ["bad", "good"], "explainers": ["leave-one-out"], "sample": 1}


def predict(texts):
    return [[0.9, 0.1] if "bad" in text else [0.2, 0.8] for text in texts]


@pytest.mark.parametrize(
    ("total", "limit", "size"), [(120, None, 100), (100, None, 100), (120, 0, 120), (120, 30, 30), (20, 30, 20)]
)
def test_the_number_of_texts_of_a_function(total, limit, size):
    draw = draw_texts(total, limit, 0, as_adapter(predict, classes=["bad", "good"]))
    drawn = draw.select(range(total))
    assert len(drawn) == len(set(drawn)) == size
    assert drawn == sorted(drawn)
    assert draw.by_default == (total > 100 and limit is None)


def test_a_classifier_is_audited_on_all_texts():
    clf = sg.TextClassifier("average", epochs=1, device="cpu").fit(TEXTS, LABELS)
    assert draw_texts(120, None, 0, as_adapter(clf)) == TextDraw(120, 120, 0)


def test_another_seed_draws_other_texts():
    assert draw_texts(120, 30, 0).select(TEXTS) != draw_texts(120, 30, 1).select(TEXTS)


@pytest.mark.slow
@pytest.mark.usefixtures("fewer_protocols")
def test_the_audit_of_a_function_reports_how_many_texts_it_reads():
    with pytest.warns(SampleWarning, match=f"^this audit reads {SENTENCE}; limit=0 audits all texts$") as caught:
        report = sg.audit(predict, TEXTS, LABELS, **OPTIONS)
    assert caught[0].filename == __file__
    assert report.find("accuracy").n == 100
    assert f"· {SENTENCE}\n" in str(report)
    same = sg.audit(predict, TEXTS, LABELS, limit=100, **OPTIONS)
    assert str(same) == str(report)
    assert sg.audit(predict, TEXTS, LABELS, limit=0, **OPTIONS).find("accuracy").n == 120
    with pytest.raises(UserError, match="limit must be a whole number from 0 up"):
        sg.audit(predict, TEXTS, LABELS, limit=-1, **OPTIONS)


@pytest.mark.slow
@pytest.mark.usefixtures("fewer_protocols")
def test_the_command_announces_the_draw_and_its_bundle_repeats_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "drawn_model.py").write_text(
        "def predict(texts):\n    return [[0.9, 0.1] if 'bad' in text else [0.2, 0.8] for text in texts]\n"
    )
    rows = [f"{text},{label}" for text, label in zip(TEXTS, LABELS, strict=True)]
    (tmp_path / "texts.csv").write_text("\n".join(["text,label", *rows]))
    words = ("audit", "drawn_model:predict", "--classes", "bad,good", "--data", "texts.csv")
    ended = run(capsys, *words, "--bundle", "bundle", "--html", "page.html")
    assert ended.code == 0, ended.err
    announcement = f"this audit of {SENTENCE} takes less than a minute; --limit 0 audits all and takes less than a min"
    assert announcement in ended.err
    assert SENTENCE in (tmp_path / "page.html").read_text()
    manifest = json.loads((tmp_path / "bundle" / "manifest.json").read_text())
    assert manifest["settings"]["limit"] == manifest["data"]["n"] == 100
    assert "--limit 100" in " ".join(manifest["command"])
    verified = run(capsys, "audit", "drawn_model:predict", "--verify", "bundle")
    assert verified.code == 0, verified.out + verified.err


def test_the_estimate_of_all_texts_by_hand(monkeypatch):
    """Eight of 16 texts; every task reads all texts, so that the whole takes twice as long."""
    now, sentences = iter([0.0, 337.5]), []
    monkeypatch.setattr(audit_progress, "monotonic", lambda: next(now))
    draw = TextDraw(16, 8, 0, by_default=True)
    progress = AuditProgress(case_of([3] * 8), Runtime(announce=sentences.append), draw=draw)
    progress.on_progress("reading", 4, 8)
    progress.on_progress("orders of words", 1, 8)  # 45 of 648 passes in 337.5 s
    assert sentences == [
        "this audit of 8 of 16 texts, drawn with seed 0 takes about 81 minutes; "
        "--limit 0 audits all and takes about 162 minutes"
    ]
