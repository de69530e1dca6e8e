"""The built wheel, installed and used from outside the repository."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    ended = subprocess.run(build, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (result,) = out.glob("*.whl")
    return result


@pytest.mark.slow
def test_the_wheel_holds_what_is_needed_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    pages = ("page.html.jinja", "page.css", "audit.html.jinja", "audit.css")
    for wanted in ("py.typed", "cli/__init__.py", *(f"report/{page}" for page in pages), "techniques/vanilla.py"):
        assert f"steadygaze/{wanted}" in names
    for wanted in sorted((ROOT / "src" / "steadygaze" / "serve" / "static").iterdir()):
        assert f"steadygaze/serve/static/{wanted.name}" in names
    assert not [name for name in names if "axe" in Path(name).name]
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests", "docs", "studies", "timings"))]


def test_the_wheel_needs_no_plotting_library_and_no_reference_implementation(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    metadata = next(name for name in archive.namelist() if name.endswith("METADATA"))
    lines = archive.read(metadata).decode().splitlines()
    needed = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist:")]
    core = {re.split(r"[^a-z0-9-]", line)[0] for line in needed if "extra ==" not in line}
    assert {"torch", "transformers"} <= core
    assert not core & {"captum", "matplotlib", "altair", "pandas", "polars", "datasets"}
    assert any(line.startswith("captum") and "extra == 'captum'" in line for line in needed)


@pytest.mark.slow
def test_the_wheel_trains_and_explains_from_outside_the_repository(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    rows = ["text,label", *["a fine film,good", "a dull film,bad"] * 12]
    (outside / "films.csv").write_text("\n".join(rows) + "\n")

    def run(*arguments: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}
        return subprocess.run(
            [sys.executable, *arguments], cwd=outside, env=environment, capture_output=True, text=True, check=True
        ).stdout

    run("-m", "steadygaze", "train", "films.csv", "--out", "model", "--epochs", "1", "--set", "hidden=8")
    explain = ["explain", "model", "a fine dull film"]
    several = f"""
import steadygaze
from steadygaze.cli import app
print(steadygaze.__file__)
for more in (["--json"], ["--html", "why.html"]):
    app({explain} + more, standalone_mode=False)
"""
    place, line, *_ = run("-c", several).splitlines()  # one process: most of a command's time is torch being imported
    assert Path(place).is_relative_to(site)
    assert json.loads(line)["tokens"] == ["a", "fine", "dull", "film"]
    assert "fine" in (outside / "why.html").read_text()
