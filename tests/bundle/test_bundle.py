"""The audit bundle: whole, hashed, read without running anything, and compared with what is measured again."""

import dataclasses
import hashlib
import json
import math
import os
from pathlib import Path

import pytest

from report.audited import ROWS, STABILITY_TITLE, answered, full_report, row, several_explainers
from steadygaze import __version__
from steadygaze.bundle.bundle import check_free, read, write
from steadygaze.bundle.manifest import FILES, Manifest, ManifestChange, changes, versions
from steadygaze.core import atomic_files, untrusted_files
from steadygaze.core.errors import UserError
from steadygaze.results.policy import as_policy
from steadygaze.results.report import Report
from steadygaze.results.report_differences import differences
from steadygaze.results.row import Row

MANIFEST = Manifest(
    {"name": "reviews-model", "kind": "a steadygaze classifier", "fingerprint": "a4" * 32},
    {"corpus": "planted-reviews", "split": "test", "fingerprint": "3f" * 32, "n": 400},
    {"model": "../models/reviews-model", "radius": 0.1, "explainers": ("attention",), "limit": None},
    (0,),
)
POLICY = as_policy(["accuracy>=0.9"])


def plain(**more) -> Report:
    return full_report(plots={}, **more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "bundle", plain(), MANIFEST, POLICY)
    return tmp_path / "bundle"


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_folder_holds_the_page_the_rows_the_policy_and_what_made_them(folder):
    assert sorted(content(folder)) == sorted(FILES)
    assert (folder / "report.html").read_text(encoding="utf-8") == plain().to_html()
    assert (folder / "report.json").read_text(encoding="utf-8") == plain().to_json()
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows == [row.to_dict() for row in ROWS]
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["schema"] == 1
    assert manifest["model"]["fingerprint"] == "a4" * 32
    assert manifest["data"] == dict(MANIFEST.data)
    assert manifest["settings"]["radius"] == 0.1
    assert manifest["command"] == list(plain().command)
    assert manifest["versions"] == versions()
    assert versions()["steadygaze"] == __version__
    assert {"python", "torch", "numpy"} <= versions().keys()


def test_every_file_is_named_with_its_sha256_and_the_manifest_seals_them(folder):
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["files"] == {
        name: hashlib.sha256(data).hexdigest() for name, data in content(folder).items() if name != "manifest.json"
    }
    assert read(folder).digest == hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()


def test_what_was_written_is_read_again(folder):
    result = read(folder)
    assert result.report.to_dict() == plain().to_dict()
    assert result.policy == POLICY
    assert result.manifest.settings == {**MANIFEST.settings, "explainers": ["attention"]}
    assert result.manifest.gate == {"passed": True, "failures": []}
    assert changes(result.manifest, MANIFEST) == ["the gate: was passed, is not set"]


def test_the_verdicts_of_several_explainers_are_read_again_and_compared(tmp_path):
    report = several_explainers(plots={})
    write(tmp_path / "bundle", report, MANIFEST, POLICY)
    again = read(tmp_path / "bundle").report
    assert (again.other_verdicts, again.recommendation) == (report.other_verdicts, report.recommendation)
    stable = {**report.other_verdicts, "gradient": answered("yes", "no", "not measured", "undecided", "yes")}
    assert differences(again, dataclasses.replace(report, other_verdicts=stable)) == [
        f"{STABILITY_TITLE} (gradient): the answer was 'no', is 'yes'"
    ]


def test_the_same_audit_makes_the_same_folder_byte_for_byte(folder, tmp_path):
    write(tmp_path / "again", plain(), MANIFEST, POLICY)
    assert content(tmp_path / "again") == content(folder)


def test_without_a_policy_there_is_no_file_for_it(tmp_path):
    write(tmp_path / "bundle", plain(), MANIFEST)
    assert not (tmp_path / "bundle" / "policy.toml").exists()
    assert read(tmp_path / "bundle").policy is None


@pytest.mark.parametrize("name", ["report.html", "report.json", "rows.jsonl", "policy.toml"])
def test_a_file_that_was_changed_or_removed_is_named(folder, name):
    before = (folder / name).read_bytes()
    (folder / name).write_bytes(before.replace(b"9", b"8", 1))
    with pytest.raises(ManifestChange, match=f"{name} was changed after it was written"):
        read(folder)
    (folder / name).unlink()
    with pytest.raises(ManifestChange, match=f"it has no {name}"):
        read(folder)


@pytest.mark.parametrize("name", ["policy.toml", "report.json"])
def test_a_file_that_is_not_utf_8_is_refused_though_its_hash_is_right(folder, name):
    (folder / name).write_bytes(b"\xff")
    file = folder / "manifest.json"
    values = json.loads(file.read_text(encoding="utf-8"))
    values["files"][name] = hashlib.sha256(b"\xff").hexdigest()
    file.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(UserError, match=f"{name} cannot be read: it is not UTF-8"):
        read(folder)


def test_a_bundle_is_what_was_hashed_even_if_a_file_changes_meanwhile(folder, monkeypatch):
    """No file is opened again once its hash is known."""
    opened, open_file = [], untrusted_files.open_file

    def counted(path, *more):
        opened.append(Path(path).name)
        return open_file(path, *more)

    monkeypatch.setattr(untrusted_files, "open_file", counted)
    read(folder)
    assert [opened.count(name) for name in ("report.html", "report.json", "rows.jsonl", "policy.toml")] == [1] * 4


def test_settings_that_were_changed_in_the_manifest_are_found_out(folder):
    file = folder / "manifest.json"
    file.write_text(file.read_text(encoding="utf-8").replace('"radius": 0.1', '"radius": 0.01'), encoding="utf-8")
    with pytest.raises(ManifestChange, match="the settings were changed"):
        read(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("schema"), "is not a manifest of an audit"),
        (lambda m: m.update(schema=9), "has schema 9; this version of steadygaze reads schema 1"),
        (lambda m: m.update(files={}), "names the files none; bundle has"),
        (lambda m: m["files"].update({"../../secret": "0"}), r"names the files .*secret"),
        (lambda m: m["files"].pop("rows.jsonl"), "names the files"),
        (lambda m: m.update(model=[]), "model"),
    ],
)
def test_a_manifest_that_is_not_ours_is_refused(folder, change, message):
    values = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    change(values)
    (folder / "manifest.json").write_text(json.dumps(values))
    with pytest.raises(UserError, match=message):
        read(folder)


@pytest.mark.parametrize("text", ["", "[]", "null", "[" * 100_000, "\x00"])
def test_a_manifest_that_is_no_json_object_is_refused(folder, text):
    (folder / "manifest.json").write_text(text)
    with pytest.raises(UserError, match=r"manifest\.json is not (a manifest|JSON)"):
        read(folder)


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(UserError, match=r"nowhere is not a whole audit bundle: it has no manifest\.json"):
        read(tmp_path / "nowhere")


def test_a_bundle_may_replace_a_bundle_or_an_empty_folder_and_nothing_else(folder, tmp_path):
    write(folder, plain(title="Again"), MANIFEST)
    assert read(folder).report.title == "Again"
    assert not (folder / "policy.toml").exists()
    (tmp_path / "empty").mkdir()
    write(tmp_path / "empty", plain(), MANIFEST)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"holds 'notes\.txt', which would be lost"):
        write(folder, plain(), MANIFEST)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match="is a file; name a folder"):
        write(tmp_path / "file", plain(), MANIFEST)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "report.html").write_text("mine")
    with pytest.raises(UserError, match="is not an audit bundle, and is left alone"):
        check_free(tmp_path / "other")
    assert (tmp_path / "other" / "report.html").read_text() == "mine"


@pytest.mark.parametrize(("part", "message"), [("model", "another model"), ("data", "other texts")])
def test_a_bundle_about_another_model_is_left_alone(folder, part, message):
    before = content(folder)
    other = dataclasses.replace(MANIFEST, **{part: {**getattr(MANIFEST, part), "fingerprint": "00" * 32}})
    with pytest.raises(UserError, match=f"is an audit bundle of {message} .* and is left alone; name another folder"):
        write(folder, plain(), other)
    assert content(folder) == before


def test_it_is_written_whole_or_not_at_all(folder, monkeypatch):
    before = content(folder)

    def full(new: Path, path: Path) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(atomic_files, "_replace", full)
    with pytest.raises(UserError, match=r"could not write .*no space left; what stood there before is untouched"):
        write(folder, plain(title="Again"), MANIFEST)
    assert content(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == ["bundle"]


def test_no_folder_of_this_machine_is_written(tmp_path):
    """Names lose their folders; the user's own words stay as they were."""
    model, data = {**MANIFEST.model, "name": str(tmp_path / "m")}, {**MANIFEST.data, "corpus": str(tmp_path / "d.csv")}
    named = dataclasses.replace(MANIFEST, model=model, data=data, command=("steadygaze", "audit", "here/m"))
    result = write(tmp_path / "bundle", plain(), named).manifest
    assert (result.model["name"], result.data["corpus"]) == ("m", "d.csv")
    assert result.command == ("steadygaze", "audit", "here/m")
    for data in content(tmp_path / "bundle").values():
        assert os.fsencode(tmp_path) not in data


def test_what_two_audits_were_made_of_is_compared():
    other = dataclasses.replace(
        MANIFEST,
        model={**MANIFEST.model, "fingerprint": "b5"},
        settings={**MANIFEST.settings, "radius": 0.2},
        seeds=(1,),
        versions={**versions(), "torch": "1.0"},
    )
    assert changes(MANIFEST, other) == [
        f"model, fingerprint: was {'a4' * 32!r}, is 'b5'",
        "settings, radius: was 0.1, is 0.2",
        f"versions, torch: was {versions()['torch']!r}, is '1.0'",
        "seeds: were [0], are [1]",
    ]


def test_a_report_does_not_differ_from_itself_nor_from_what_was_written_of_it(folder):
    assert differences(plain(), plain()) == []
    assert differences(read(folder).report, plain()) == []


def with_row(change) -> Report:
    return plain(rows=tuple(change(row) if row.measure == "sufficiency" else row for row in ROWS))


def test_a_number_that_differs_is_reported_with_its_signature_and_both_values():
    (difference,) = differences(plain(), with_row(lambda row: dataclasses.replace(row, value=0.041)))
    signature = next(row.signature for row in ROWS if row.measure == "sufficiency")
    assert difference == f"sufficiency of attention: was 0.04, is 0.041 ({signature})"
    (difference,) = differences(plain(), with_row(lambda row: dataclasses.replace(row, interval=(0.02, 0.07))))
    assert "its interval was 0.02 to 0.06, is 0.02 to 0.07" in difference
    (difference,) = differences(plain(), with_row(lambda row: dataclasses.replace(row, interval=None)))
    assert "is none" in difference
    (difference,) = differences(plain(), with_row(lambda row: dataclasses.replace(row, n=399)))
    assert "n was 400, is 399" in difference


def test_a_number_that_is_no_longer_defined_differs():
    (difference,) = differences(plain(), with_row(lambda row: dataclasses.replace(row, value=math.nan)))
    assert "was 0.04, is nan" in difference


@pytest.mark.parametrize(("step", "count"), [(5e-7, 0), (2e-6, 1)])
def test_rounding_is_no_difference(step, count):
    moved = with_row(lambda row: dataclasses.replace(row, value=row.value + step))
    assert len(differences(plain(), moved)) == count
    assert len(differences(plain(), moved, tolerance=1e-5)) == 0


def test_missing_and_new_rows_are_reported():
    assert [difference.split(":")[0] for difference in differences(plain(), plain(rows=ROWS[1:]))] == [
        "accuracy of the prediction is missing"
    ]
    more = plain(rows=(*ROWS, row("jensen-shannon/noise", 0.5, radius=0.7)))
    assert [difference.split(":")[0] for difference in differences(plain(), more)] == [
        "jensen-shannon/noise of attention is new"
    ]


def test_an_answer_that_changed_is_reported():
    changed = (dataclasses.replace(plain().verdicts[0], answer="no"), *plain().verdicts[1:])
    assert differences(plain(), plain(verdicts=changed)) == [f"{STABILITY_TITLE}: the answer was 'undecided', is 'no'"]


def test_another_version_or_model_is_reported_once_and_the_numbers_are_compared():
    def other(row: Row) -> Row:
        return dataclasses.replace(row, settings={**row.settings, "v": "0.2.0", "model": "ffff"})

    moved = plain(rows=tuple(map(other, ROWS)), versions={**plain().versions, "torch": "3.0"})
    assert differences(plain(), moved) == [
        "version of torch: was 2.13.0, is 3.0",
        "the version of steadygaze: was 0.1.0, is 0.2.0",
        "the model: was a41c77e05b19, is ffff",
    ]
