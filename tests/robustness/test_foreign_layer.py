"""Files of users are opened in one place; the pieces of that place, by themselves."""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import steadygaze
from robustness.damage import SPECIAL
from source_trees import nodes
from steadygaze.core.errors import UserError
from steadygaze.core.maths.distributions import normalize
from steadygaze.core.tensor_files import read_layout, read_tensors
from steadygaze.core.types import Batch
from steadygaze.core.untrusted_files import DEEPEST, MissingFile, open_file, parse_json, read_bytes, read_json, resolve
from steadygaze.models.inference import NonFiniteOutput, refuse_non_finite

SOURCE = Path(steadygaze.__file__).parent
LAYER = {"untrusted_files.py", "tensor_files.py"}
BANNED = {"load_file", "safe_open", "snapshot_read", "json.load"}
ALLOWED = {
    ("demo.py", "file.read_bytes"),
    ("lexicon.py", "Path(__file__).with_suffix('.toml').read_text"),
    ("atomic_files.py", "Path('/proc/locks').read_text"),
    ("bulk.py", "file.open"),
    ("source_digest.py", "path.read_bytes"),
    ("published_tables.py", "files('steadygaze.study.published').joinpath(f'{paper}.toml').read_text"),
}
"""Files that the command wrote itself, files of the package, and the locks of the kernel."""


def direct_reads(source: Path) -> Iterator[tuple[str, str]]:
    """Calls that open a file for reading without the layer."""
    for path in sorted(source.rglob("*.py")):
        if path.name in LAYER:
            continue
        for node in nodes(path):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            mode = ast.unparse(node.args[-1]) if node.args else ""
            reads = called.endswith((".read_text", ".read_bytes")) or called in BANNED
            opens = (called == "open" or called.endswith(".open")) and mode in ("'rb'", "'r'", "")
            if reads or opens:
                yield path.name, called


@pytest.mark.slow
def test_files_of_users_are_opened_in_one_place() -> None:
    assert set(direct_reads(SOURCE)) == ALLOWED


def test_a_direct_read_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("from pathlib import Path\nPath('a').read_text()\nopen('b', 'rb')\n")
    assert set(direct_reads(tmp_path)) == {("one.py", "Path('a').read_text"), ("one.py", "open")}


@pytest.mark.parametrize("kind", [name for name in SPECIAL if name != "sparse"])
def test_only_regular_files_are_opened(kind: str, tmp_path: Path) -> None:
    SPECIAL[kind](tmp_path / "file")
    with pytest.raises(UserError, match="file"), open_file(tmp_path / "file"):
        pass


def test_a_file_is_read_up_to_its_limit_and_no_further(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 10)
    assert read_bytes(tmp_path / "file", 10) == b"x" * 10
    with pytest.raises(UserError, match="it has 10 bytes, and at most 9 are read"):
        read_bytes(tmp_path / "file", 9)
    with pytest.raises(MissingFile):
        read_bytes(tmp_path / "none")
    with pytest.raises(UserError, match="cannot be read"):
        read_bytes("a\0b")


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else pytest.skip("no /proc")
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ".", "none"):
        with pytest.raises(UserError):
            read_bytes(tmp_path / name)
    assert len(os.listdir("/proc/self/fd")) == before


def test_json_is_limited_in_depth_and_digits(tmp_path: Path) -> None:
    deepest = "[" * DEEPEST + "]" * DEEPEST
    assert parse_json(deepest, "x") is not None
    with pytest.raises(UserError, match="x is not JSON that can be read: it is nested more than 64 levels deep"):
        parse_json(f"[{deepest}]", "x")
    assert parse_json("[9223372036854775807, 1e3]", "x") == [2**63 - 1, 1000.0]
    assert parse_json("1000000000000000019884624838656", "x") == 1e30  # as in files of tokenizers
    with pytest.raises(UserError, match="a whole number of 401 digits"):
        parse_json("1" + "0" * 400, "x")
    (tmp_path / "a.json").write_text("[NaN]")
    assert np.isnan(read_json(tmp_path / "a.json")[0])
    with pytest.raises(UserError, match="NaN is not a JSON number"):
        read_json(tmp_path / "a.json", finite=True)


def test_a_loop_of_links_is_not_resolved(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UserError, match="form a loop"):
        resolve(tmp_path / "loop" / "x")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_tensors_that_are_not_finite_are_found_in_every_type(dtype: torch.dtype, value: float, tmp_path: Path) -> None:
    tensor = torch.zeros(3, 4, dtype=dtype)
    save_file({"whole": torch.ones(2, dtype=torch.int64), "x": tensor, "none": tensor[:0]}, tmp_path / "a.safetensors")
    assert read_layout(tmp_path / "a.safetensors")["x"] == ((3, 4), dtype)
    assert read_tensors(tmp_path / "a.safetensors")["x"].equal(tensor)
    tensor[1, 2] = value
    save_file({"x": tensor}, tmp_path / "a.safetensors")
    with pytest.raises(UserError, match="tensor x contains NaN or infinity"):
        read_tensors(tmp_path / "a.safetensors")


def test_shares_of_what_is_not_a_number_are_not_a_number() -> None:
    """They were even, so that every distance between two of them was 0."""
    mask = torch.tensor([[True, True, False], [True, True, True]])
    result = normalize(torch.tensor([[torch.nan, 1.0, 5.0], [0.0, 0.0, 0.0]], dtype=torch.float64), mask)
    assert result[0, :2].isnan().all()
    assert result[1].tolist() == pytest.approx([1 / 3] * 3)


def test_the_first_text_whose_output_is_not_finite_is_named() -> None:
    ids = torch.zeros(3, 2, dtype=torch.long)
    batch = Batch(ids, ids == 0, ids == 0, torch.tensor([7, 4, 2]))
    values = torch.tensor([[1.0, 2.0], [torch.nan, 0.0], [torch.inf, 0.0]])
    with pytest.raises(NonFiniteOutput, match="output for text 3 is not finite") as caught:
        refuse_non_finite(batch, torch.zeros(3), values)
    assert caught.value.row == 2
    refuse_non_finite(batch, values[:1].expand(3, -1), None)
    refuse_non_finite(batch, torch.full((3, 2), 3e38))  # finite, though its sum is not
