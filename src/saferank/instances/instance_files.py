"""Instance files: queries with their items in production's order and the click model of their users.

    {"instances": [
      {"id": "q1", "model": "pbm", "items": ["a", "b"], "attraction": [0.5, 0.2], "examination": [1, 0.8]}]}

The first K items are the original ranking, the others are unranked. Which fields a model has, and in which shape, is
declared in its class; plug-in models are read, checked and written like ours. Whatever is wrong with a file is
an ``InstanceError`` of one line: the file, the instance, the field, what was found and what is expected.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from saferank.click_models import PBM, click_model
from saferank.click_models.shapes import FieldError, Shape, field_shapes, found
from saferank.errors import UsageError
from saferank.files import JsonFileError, on_one_line, read_json, write_atomically

_NAMING_KEYS = ("id", "model", "items")


class InstanceError(UsageError):
    """What is wrong with an instance file, in one line."""


@dataclass(frozen=True, eq=False)  # arrays have no single truth of equality
class Instance:
    """One query under one click model; item number i is ``items[i]``."""

    id: str
    model: Any
    model_name: str
    items: tuple[str, ...]
    about: str | None = None
    examination: tuple[float, ...] | None = None  # by position, as PBM has it; None when that is not known


def load_instances(path: str | os.PathLike[str]) -> list[Instance]:
    """The instances of a file, all valid, or an ``InstanceError``."""
    try:
        data = read_json(path)
    except JsonFileError as problem:
        raise InstanceError(f"{problem}; expected an instance file") from problem
    return parse_instances(data, on_one_line(path))


def parse_instances(data: object, source_name: str) -> list[Instance]:
    """The instances of decoded JSON; ``source_name`` stands in messages."""
    top = _object(data, source_name, known=("instances", "about"))
    _about(top, source_name)
    if "instances" not in top:
        raise InstanceError(f"{source_name}: instances: is missing; expected a list of objects")
    entries = top["instances"]
    if not isinstance(entries, list) or not entries:
        raise InstanceError(f"{source_name}: instances: found {found(entries)}, expected a list of at least one object")
    instances = [_instance(entry, _where(source_name, i, entry)) for i, entry in enumerate(entries)]
    _refuse_repeated(instances, source_name)
    return with_examination(instances)


def save_instances(path: str | os.PathLike[str], instances: Iterable[Instance], about: str | None = None) -> None:
    """Write an instance file that ``load_instances`` reads back exactly, one instance a line."""
    entries = [entry_of(instance) for instance in instances]
    head = {} if about is None else {"about": about}
    parse_instances({**head, "instances": entries}, on_one_line(path))  # nothing is written that could not be read
    opening = "".join(f"{json.dumps(key)}: {json.dumps(text)},\n" for key, text in head.items())
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    write_atomically(path, f'{{{opening}"instances": [\n{lines}\n]}}\n')


def with_examination(instances: Sequence[Instance]) -> list[Instance]:
    """The instances, each with the examination probabilities of the PBM with the same id, as far as there is one.

    Policies that are made for PBM get these, whatever the click model of the users is.
    """
    known = {instance.id: tuple(instance.model.examination.tolist()) for instance in instances if _is_pbm(instance)}
    return [replace(each, examination=known.get(each.id, each.examination)) for each in instances]


def _is_pbm(instance: Instance) -> bool:
    return isinstance(instance.model, PBM)


def first_queries(instances: Sequence[Instance], count: int) -> list[Instance]:
    """The instances of the first ``count`` different ids."""
    wanted = set(list(dict.fromkeys(instance.id for instance in instances))[:count])
    return [instance for instance in instances if instance.id in wanted]


def check_positions(instance: Instance, n_positions: int, source: str) -> None:
    """Raise an ``InstanceError`` unless the instance can fill ``n_positions`` positions."""
    problem = positions_problem(instance, n_positions)
    if problem is not None:
        raise InstanceError(f"{source}: {problem}")


def positions_problem(instance: Instance, n_positions: int) -> str | None:
    """Why the instance cannot fill ``n_positions`` positions; None when it can."""
    where = f"instance {instance.id!r} ({instance.model_name})"
    if n_positions < 1:
        return f"{where}: positions: found {n_positions}, expected at least 1"
    if n_positions > len(instance.items):
        return f"{where}: items: found {len(instance.items)} for {n_positions} positions; show fewer"
    for name, shape in field_shapes(type(instance.model)).items():
        covered = shape.positions(getattr(instance.model, name))
        if covered is not None and covered < n_positions:
            return f"{where}: {name}: covers {covered} positions, expected at least {n_positions}"
    return None


def _where(source: str, index: int, entry: object) -> str:
    """The file and the instance, as far as it has an id."""
    name = entry.get("id") if isinstance(entry, dict) else None
    return f"{source}: instances[{index}] (id {found(name)})" if name is not None else f"{source}: instances[{index}]"


def _object(value: object, where: str, known: tuple[str, ...] | None = None) -> dict[str, Any]:
    """``value`` as an object without repeated keys, and without other keys than the known ones."""
    if not isinstance(value, dict):
        raise InstanceError(f"{where}: found {found(value)}, expected an object")
    repeated = getattr(value, "repeated", None)
    if repeated is not None:
        raise InstanceError(f"{where}: {_key(repeated)}: the key is there twice; keep one")
    for key in value:
        if known is not None and key not in known:
            raise InstanceError(f"{where}: {_key(key)}: unknown key; known ones: {', '.join(known)}")
    return value


def _key(key: object) -> str:
    return key if isinstance(key, str) and key.isidentifier() else found(key)


def _field(entry: dict[str, Any], name: str, where: str) -> Any:
    if name not in entry:
        raise InstanceError(f"{where}: {name}: is missing; add it")
    return entry[name]


def _text(entry: dict[str, Any], name: str, where: str) -> str:
    value = _field(entry, name, where)
    if not isinstance(value, str) or not value:
        raise InstanceError(f"{where}: {name}: found {found(value)}, expected a string that is not empty")
    return value


def _about(entry: dict[str, Any], where: str) -> str | None:
    about = entry.get("about", "")
    if not isinstance(about, str):
        raise InstanceError(f"{where}: about: found {found(about)}, expected a string")
    return entry.get("about")


def _instance(value: object, where: str) -> Instance:
    entry = _object(value, where)
    name = _text(entry, "id", where)
    kind = _model_class(entry, where)
    shapes = field_shapes(kind)
    _object(entry, where, known=(*_NAMING_KEYS, *shapes, "about"))
    items = _items(entry, where)
    fields = {field: _read(entry, field, shape, len(items), where) for field, shape in shapes.items()}
    return Instance(name, kind(**fields), entry["model"], items, _about(entry, where))


def _model_class(entry: dict[str, Any], where: str) -> type:
    name = _text(entry, "model", where)
    try:
        return click_model(name)
    except ValueError as problem:
        raise InstanceError(f"{where}: model: {problem}") from None


def _items(entry: dict[str, Any], where: str) -> tuple[str, ...]:
    items = _field(entry, "items", where)
    if not isinstance(items, list) or not items:
        raise InstanceError(f"{where}: items: found {found(items)}, expected a list of names")
    seen: dict[str, int] = {}
    for place, item in enumerate(items):
        if not isinstance(item, str) or not item:
            raise InstanceError(f"{where}: items: entry {place}: found {found(item)}, expected a name (a string)")
        if seen.setdefault(item, place) != place:
            raise InstanceError(f"{where}: items: entries {seen[item]} and {place} are both {found(item)}; rename one")
    return tuple(items)


def _read(entry: dict[str, Any], name: str, shape: Shape, n_items: int, where: str) -> Any:
    try:
        return shape.read(_field(entry, name, where), n_items)
    except FieldError as problem:
        raise InstanceError(f"{where}: {name}: {problem}") from None


def _refuse_repeated(instances: list[Instance], source: str) -> None:
    seen: dict[tuple[str, str], int] = {}
    for index, instance in enumerate(instances):
        first = seen.setdefault((instance.id, instance.model_name), index)
        if first != index:
            raise InstanceError(
                f"{source}: instances[{index}] (id {found(instance.id)}): id: "
                f"instances[{first}] has the same id and model {instance.model_name}; rename or remove one"
            )


def entry_of(instance: Instance) -> dict[str, object]:
    """The JSON object of an instance, from which ``parse_instances`` makes the same one, its examination aside."""
    named = {"id": instance.id, "model": instance.model_name, "items": list(instance.items)}
    shapes = field_shapes(type(instance.model))
    fields = {name: shape.write(getattr(instance.model, name)) for name, shape in shapes.items()}
    about = {} if instance.about is None else {"about": instance.about}
    return {**named, **fields, **about}
