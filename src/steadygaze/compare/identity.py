"""Everything a comparison's numbers depend on, as one record.  Of files what is in them, not where they lie."""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import torch

from steadygaze import __version__
from steadygaze.audit.case import Plan
from steadygaze.compare.material import Material
from steadygaze.compare.order import Order
from steadygaze.foreign_files import open_file
from steadygaze.train.device import best


def identity(order: Order, material: Material, device: str) -> dict[str, Any]:
    return {
        "steadygaze": __version__,
        "torch": torch.__version__,
        "device": best(device).type,
        "data": {**material.known, "read": material.data, "texts": len(material.examples)},
        "techniques": list(order.techniques),
        "seeds": list(order.numbers),
        "encoder": encoder(order),
        "vectors": _file(order.vectors),
        "shared": shared(order),
        "own": {name: own(order, name) for name in order.techniques},
        "audit": {
            "explainer": explainers(order),
            "synonyms": synonyms(order),
            **{key: value for key, value in dataclasses.asdict(plan(order)).items() if key != "synonyms"},
        },
    }


def plan(order: Order) -> Plan:
    """Of every audit."""
    return Plan(seed=order.seed)


def shared(order: Order) -> dict[str, Any]:
    """Settings of training that are the same for all techniques."""
    parts = [_parts(order, name) for name in order.techniques]
    return {key: value for key, value in parts[0].items() if all(part[key] == value for part in parts)}


def own(order: Order, technique: str) -> dict[str, Any]:
    """Settings of a technique alone."""
    same = shared(order)
    other = {key: value for key, value in _parts(order, technique).items() if key not in same}
    return {**dataclasses.asdict(order.training(technique).technique), **other}


def encoder(order: Order) -> str:
    """Without the path of this machine."""
    kind, colon, place = order.encoder.partition(":")
    return f"{kind}:{Path(place).name}" if colon and Path(place).is_dir() else order.encoder


def explainers(order: Order) -> str:
    """One for all, or whose is which."""
    each = {name: order.explains(name) for name in order.techniques}
    if len(set(each.values())) == 1:
        return order.explains(order.baseline)
    return ", ".join(f"{asked} of {name}" for name, asked in each.items())


def synonyms(order: Order) -> str | None:
    """As a number's signature can hold it."""
    if isinstance(order.synonyms, dict):
        digest = hashlib.sha256(json.dumps(order.synonyms, sort_keys=True).encode()).hexdigest()
        return f"given in Python, {digest[:12]}"
    return _file(order.synonyms)


def _parts(order: Order, technique: str) -> dict[str, Any]:
    said = order.training(technique)
    reading = {**dataclasses.asdict(said.reading), "synonyms": _file(said.reading.synonyms)}
    return {**dataclasses.asdict(said.architecture), **dataclasses.asdict(said.training), **reading}


def _file(given: str | None) -> str | None:
    """Its name and, where it is a file, a digest of what is in it."""
    if given is None or not Path(given).is_file():
        return given
    with open_file(given) as opened:
        return f"{Path(given).name}, {hashlib.file_digest(opened, 'sha256').hexdigest()[:12]}"
