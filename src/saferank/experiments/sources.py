"""What results are made of: the settings, the instances and the plug-ins, each with a digest.

They are part of the provenance of results, and are compared when an interrupted run is resumed.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saferank.experiments.run_folder import ours
from saferank.files import sha256_of
from saferank.instances import Instance
from saferank.plugins import digests_of
from saferank.reporting.numbers import counted
from saferank.simulation.experiment import Cell


def sources_of(given: object, cells: Sequence[Cell], left_out: Sequence[str] = ()) -> dict[str, Any]:
    """The part of the provenance that says what was read and, under ``asked``, everything that results depend on.

    The instances of the cells were ``given`` as a name, a path or a list; ``left_out`` is what was asked for and is not
    played, in sentences.
    """
    read, plan = read_facts(given, cells), cells[0].plan
    asked = {
        "instances": read["instances"]["played_sha256"],
        "plugins": read["plugins"],
        "policies": list(dict.fromkeys(cell.kind.name for cell in cells)),
        "positions": _one_or_all([cell.plan.n_positions for cell in cells]),
        "rounds": plan.rounds,
        "repetitions": plan.repetitions,
        "rule": _one_or_all([cell.plan.rule for cell in cells]),
        "seed": plan.seed,
        "checkpoints": list(plan.checkpoints),
        "drift": None if plan.drift is None else repr(plan.drift),
        "lifetime": _one_or_all([cell.plan.lifetime for cell in cells]),
        "world": plan.world,
    }
    return {**read, "asked": asked, **({"left_out": list(left_out)} if left_out else {})}


def read_facts(given: object, cells: Sequence[Cell]) -> dict[str, Any]:
    """Digests of the package's source, the instances and the plug-ins that these cells are made of."""
    played = list({(cell.instance.id, cell.instance.model_name): cell.instance for cell in cells}.values())
    plugins = digests_of([kind for cell in cells for kind in (cell.kind.policy, type(cell.instance.model))])
    return {"source": ours()["source"], "instances": instance_facts(given, played), "plugins": plugins}


def _one_or_all(values: Sequence[Any]) -> Any:
    """The value that all have, or the different ones in their order."""
    different = list(dict.fromkeys(values))
    return different[0] if len(different) == 1 else different


def instance_facts(given: object, played: Sequence[Instance]) -> dict[str, Any]:
    """Name and SHA-256 of the instance file (None where there is none), and the digest of the instances played."""
    path = Path(given) if isinstance(given, str | os.PathLike) else None
    is_file = path is not None and path.is_file()
    return {
        "name": None if path is None else path.name,
        "sha256": sha256_of(path) if path is not None and is_file else None,
        "played": len(played),
        "played_sha256": instances_digest(played),
    }


def instances_digest(instances: Iterable[Instance]) -> str:
    """SHA-256 of everything about instances that results depend on; equal for a list and for the file made of it."""
    sha = hashlib.sha256()
    for each in instances:
        fields = {name: np.asarray(value).tolist() for name, value in each.model._asdict().items()}
        entry = [each.id, each.model_name, each.items, fields, each.examination]
        sha.update(json.dumps(entry, sort_keys=True).encode() + b"\n")
    return sha.hexdigest()


def in_words(provenance: dict[str, Any]) -> str | None:
    """The instances of results in a line; None for results that do not say."""
    facts = provenance.get("instances")
    if not isinstance(facts, dict):
        return None
    name = facts.get("name") or "a list"
    file = f" (sha256 {facts['sha256'][:12]})" if facts.get("sha256") else ""
    return f"{counted(facts['played'], 'instance')} of {name}{file}, digest {facts['played_sha256'][:12]}"
