"""`make` installs the CPU build of torch, whatever pip is configured with.

Each test runs the Makefile's own rule with an isolated pip configuration and a folder of small stand-in wheels.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the Makefile, the pinned versions and an empty virtual environment."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("Makefile", "constraints.txt"):
        shutil.copy(ROOT / name, folder / name)
    subprocess.run([sys.executable, "-m", "venv", folder / ".venv"], check=True)
    return folder


@pytest.fixture
def checkout(template: Path) -> Path:
    """The same with nothing installed."""
    (template / ".venv" / "torch.stamp").unlink(missing_ok=True)
    for site in (template / ".venv").glob("lib/python*/site-packages"):
        for name in ("torch", "nvidia_cuda_runtime", "uv"):
            for result in site.glob(f"{name}*"):
                shutil.rmtree(result)
    return template


@pytest.mark.slow
def test_the_gpu_build_of_the_default_index_is_never_installed(checkout: Path, tmp_path: Path) -> None:
    wheel(tmp_path, "torch", pinned(), requires="nvidia_cuda_runtime")
    wheel(tmp_path, "nvidia_cuda_runtime", "13.0")
    done = make(checkout, tmp_path)
    assert done.returncode != 0
    assert "No cpu build of torch==" in done.stdout + done.stderr
    assert installed(checkout) == set()
    assert not (checkout / ".venv" / "torch.stamp").exists()


@pytest.mark.slow
def test_the_cpu_build_is_preferred_to_the_gpu_build(checkout: Path, tmp_path: Path) -> None:
    wheel(tmp_path, "torch", pinned(), requires="nvidia_cuda_runtime")
    wheel(tmp_path, "nvidia_cuda_runtime", "13.0")
    wheel(tmp_path, "torch", f"{pinned()}+cpu")
    done = make(checkout, tmp_path)
    assert done.returncode == 0, done.stderr
    assert installed(checkout) == {f"torch-{pinned()}+cpu"}


@pytest.mark.slow
def test_uv_installs_the_cpu_build_where_pip_has_none(checkout: Path, tmp_path: Path) -> None:
    """A stand-in for uv records its arguments: the real one needs PyTorch's own index."""
    wheel(tmp_path, "torch", pinned(), requires="nvidia_cuda_runtime")
    wheel(tmp_path, "uv", "0.13.7", scripts="import sys\n\n\ndef main():\n    print('uv', *sys.argv[1:])\n")
    done = make(checkout, tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"--torch-backend=cpu --constraint constraints.txt torch=={pinned()}" in done.stdout


def make(checkout: Path, wheels: Path) -> subprocess.CompletedProcess[str]:
    isolated = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    isolated |= {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    return subprocess.run(
        ["make", ".venv/torch.stamp"], cwd=checkout, env=isolated, capture_output=True, text=True, check=False
    )


def pinned() -> str:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return next(line.removeprefix("torch==") for line in lines if line.startswith("torch=="))


def installed(checkout: Path) -> set[str]:
    result = (checkout / ".venv").glob("lib/python*/site-packages/*.dist-info")
    return {
        folder.name.removesuffix(".dist-info") for folder in result if not folder.name.startswith(("pip-", "setup"))
    }


def wheel(folder: Path, name: str, version: str, requires: str = "", scripts: str = "") -> None:
    """A wheel with one module and, with `scripts`, a command of the same name."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += f"Requires-Dist: {requires}\n" if requires else ""
    files = {
        f"{name}/__init__.py": scripts,
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if scripts:
        files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{name} = {name}:main\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
        archive.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"]))
