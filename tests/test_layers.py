"""The import rules, as a test: a room imports only the rooms before it, and the light rooms stay light."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "steadygaze"
SOURCE = Path(__file__).parent.parent / "src" / PACKAGE
LAYERS = [  # in the order data flows; rooms on one line may not import one another
    {"escape"},
    {"errors", "terminal"},
    {"atomic", "arguments", "foreign_files"},
    {"outputs", "types", "record"},
    {"config", "highlight", "maths", "tensor_files"},
    {"explanation"},
    {"corpus"},
    {"tokens"},
    {"batch"},
    {"encode", "score", "attend", "decode", "reader"},
    {"model"},
    {"infer", "lanes", "perturb", "rationaliser"},
    {"objective"},
    {"train"},
    {"explain"},
    {"report"},
    {"description"},
    {"store"},
    {"inputs", "order"},
    {"lineage"},
    {"fitting"},
    {"estimator"},
    {"subject"},
    {"images"},
    {"loading", "text_explainer", "image_explainer"},
    {"explain_fitting"},
    {"audit"},
    {"verbs", "listing"},
    {"compare"},
    {"demo", "options"},
    {"cli"},
]
HEIGHT = {room: height for height, layer in enumerate(LAYERS) for room in layer}
NO_TORCH = (
    "record",
    "errors",
    "atomic",
    "outputs",
    "foreign_files",
    "highlight",
    "explanation",
    "corpus",
    "tokens",
    "report",
    "options",
    "cli",
)
BANNED = {  # a room, or a part of one: allowed by height, forbidden all the same
    **{room: {"torch", "accelerate", "transformers"} for room in NO_TORCH},
    "model": {f"{PACKAGE}.{room}" for room in ("corpus", "tokens", "batch")},
    "objective": {f"{PACKAGE}.{room}" for room in ("corpus", "tokens", "train", "audit")},
    "perturb": {f"{PACKAGE}.model"},
    "train": {f"{PACKAGE}.audit"},
    "audit.probe": {f"{PACKAGE}.{room}" for room in ("objective", "train", "fitting", "estimator")},
}
ONLY = {  # of ours, these and nothing else
    "report": {
        f"{PACKAGE}.{room}"
        for room in (
            "escape",
            "errors",
            "arguments",
            "atomic",
            "foreign_files",
            "outputs",
            "types",
            "record",
            "highlight",
            "explanation",
            "report",
        )
    },
    "audit.measure": {f"{PACKAGE}.{room}" for room in ("types", "record", "maths", "audit.measure")},
}


def within(module: str, room: str) -> bool:
    """Whether a module is a room, a part of it, or a name in it."""
    return f"{module}.".startswith(f"{room}.")


def imported(path: Path) -> Iterator[str]:
    """Every module that runs or type-checks at import time or later, as written."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def wrong_imports(source: Path) -> Iterator[str]:
    for path in sorted(source.rglob("*.py")):
        module = ".".join(path.relative_to(source).with_suffix("").parts)
        room = module.split(".")[0]
        if room == "__init__":
            continue
        for name in imported(path):
            target = name.split(".")[1] if name.startswith(f"{PACKAGE}.") else None
            if target is not None and target.startswith("__"):
                continue  # steadygaze.__version__
            upward = target is not None and target != room and HEIGHT[target] >= HEIGHT[room]
            lazily_typed = name.startswith("torch") and room == "types"
            if not lazily_typed and (upward or forbidden(module, name)):
                yield f"{module} -> {name}"


def forbidden(module: str, name: str) -> bool:
    banned = any(within(name, one) for room, those in BANNED.items() if within(module, room) for one in those)
    rules = [those for room, those in ONLY.items() if within(module, room) and within(name, PACKAGE)]
    return banned or not all(any(within(name, one) for one in those) for those in rules)


def test_imports_point_up_the_list_only() -> None:
    assert sorted(wrong_imports(SOURCE)) == []


def test_a_wrong_import_is_found(tmp_path: Path) -> None:
    """The test above can fail: upwards, sideways, and torch where it is banned."""
    (tmp_path / "model.py").write_text("from steadygaze.estimator import load\n")
    (tmp_path / "score.py").write_text("from steadygaze.decode import Linear\n")
    (tmp_path / "record.py").write_text("import torch.nn\n")
    (tmp_path / "train.py").write_text("from steadygaze.model import Classifier\n")
    assert sorted(wrong_imports(tmp_path)) == [
        "model -> steadygaze.estimator.load",
        "record -> torch.nn",
        "score -> steadygaze.decode.Linear",
    ]


def test_a_wrong_import_within_a_room_is_found(tmp_path: Path) -> None:
    """Measures call no models and know no probes, probes train nothing; a protocol may."""
    for part in ("measure", "probe", "protocol"):
        (tmp_path / "audit" / part).mkdir(parents=True)
    (tmp_path / "audit" / "measure" / "one.py").write_text(
        "import torch\nfrom steadygaze.maths import rank\nfrom steadygaze.audit.measure import erasure\n"
        "from steadygaze.model import Classifier\nfrom steadygaze.audit import probe\nimport steadygaze.audit.bounds\n"
    )
    (tmp_path / "audit" / "probe" / "two.py").write_text(
        "from steadygaze.model import Classifier\nfrom steadygaze.infer import inference\n"
        "from steadygaze import train\nfrom steadygaze.objective.seat import Seat\nimport steadygaze.estimator\n"
    )
    (tmp_path / "audit" / "protocol" / "three.py").write_text("from steadygaze.train.run import run\n")
    (tmp_path / "audit" / "probes.py").write_text("from steadygaze.estimator import load\n")  # a name that begins alike
    (tmp_path / "train.py").write_text("from steadygaze.audit.measure import erasure\n")
    assert sorted(wrong_imports(tmp_path)) == [
        "audit.measure.one -> steadygaze.audit.bounds",
        "audit.measure.one -> steadygaze.audit.probe",
        "audit.measure.one -> steadygaze.model.Classifier",
        "audit.probe.two -> steadygaze.estimator",
        "audit.probe.two -> steadygaze.objective.seat.Seat",
        "audit.probe.two -> steadygaze.train",
        "train -> steadygaze.audit.measure.erasure",
    ]


def test_every_room_is_placed() -> None:
    rooms = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert rooms - {"__init__"} == set(HEIGHT)
