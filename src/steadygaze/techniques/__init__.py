"""Training techniques: one file each, one line each here.

A technique of a user is registered in the same way, by its own module: TECHNIQUES["name"] = Class.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from steadygaze.core.errors import UserError, unknown
from steadygaze.core.types import Registry

if TYPE_CHECKING:
    from steadygaze.techniques.technique import Technique

TECHNIQUES: "Registry[type[Technique]]" = Registry.of(
    {
        "vanilla": "steadygaze.techniques.vanilla:Vanilla",
        "synonym-augmentation": "steadygaze.techniques.synonym_augmentation:SynonymAugmentation",
        "word-at": "steadygaze.techniques.word_at:WordAT",
        "word-iat": "steadygaze.techniques.word_iat:WordIAT",
        "attention-rp": "steadygaze.techniques.attention_rp:AttentionRP",
        "attention-at": "steadygaze.techniques.attention_at:AttentionAT",
        "attention-iat": "steadygaze.techniques.attention_iat:AttentionIAT",
        "seat": "steadygaze.techniques.seat:Seat",
        "anchored": "steadygaze.techniques.anchored:Anchored",
        "consensus": "steadygaze.techniques.consensus:Consensus",
        "random-pretraining": "steadygaze.techniques.random_pretraining:RandomPretraining",
        "mask-neutral": "steadygaze.techniques.mask_neutral:MaskNeutral",
        "adversary": "steadygaze.techniques.adversary:Adversary",
        "rnp": "steadygaze.techniques.rnp:Rnp",
        "three-player": "steadygaze.techniques.three_player:ThreePlayer",
        "hardkuma": "steadygaze.techniques.hardkuma:HardKuma",
        "a2r": "steadygaze.techniques.a2r:A2R",
        "fresh": "steadygaze.techniques.fresh:Fresh",
    }
)
"""Techniques by name.  `TECHNIQUES["name"] = Class` registers your own."""
VARIANTS = {"fr": "FR is 'rnp' with shared_encoder=True (--technique rnp --set shared_encoder=True)."}
"""Techniques of papers that are a setting of another one: name in lower case -> how to train it."""


def find_technique(name: Any) -> "type[Technique]":
    """Return a registered technique."""
    if not isinstance(name, str) or name not in TECHNIQUES:
        if variant := VARIANTS.get(str(name).lower()):
            raise UserError(f"unknown technique {name!r}: {variant}")
        raise UserError(
            f"{unknown('technique', name, TECHNIQUES)}  To use your own, first import the module that registers it; "
            "a command does so with --import MODULE"
        )
    technique = TECHNIQUES[name]
    technique.check_definition()
    return technique


def own_techniques(names: Iterable[str]) -> "dict[str, type[Technique]]":
    """Return the techniques among these that are not part of steadygaze.

    A worker process that receives the classes imports their modules.
    """
    return {name: TECHNIQUES[name] for name in names if not TECHNIQUES[name].__module__.startswith("steadygaze.")}


def own_source(technique: "type[Technique]") -> dict[str, str]:
    """Return the digest of the file of a user's technique; empty for those of steadygaze, and without a file."""
    from steadygaze.core.source_digest import class_digest

    if technique.__module__.startswith("steadygaze."):
        return {}
    digest = class_digest(technique)
    return {} if digest is None else {"technique_source": digest}


def own_modules(names: Iterable[str]) -> list[str]:
    """Return the modules that register these techniques, for --import; MODULE if a script or a notebook has one."""
    modules = sorted({technique.__module__ for technique in own_techniques(names).values()})
    return ["MODULE" if module == "__main__" else module for module in modules]
