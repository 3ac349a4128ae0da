"""Instances, from files or made in Python: queries with their items in production's order and their users' click model.

    {"instances": [
      {"id": "q1", "model": "pbm", "items": ["a", "b"], "attraction": [0.5, 0.2], "examination": [1, 0.8]}]}

The first K items are the original ranking, the others are unranked. Which fields a model has, and in which shape, is
declared in its class; plug-in models are read, checked and written like ours. Whatever is wrong is an ``InstanceError``
of one line: the file, the instance, the field, what was found and what is expected. Objects and dicts that were made in
Python become what a file would hold, and go through the same check: compiled code does not notice an array that is
too short.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from saferank.click_models import CLICK_MODELS, PBM, click_model
from saferank.click_models.shapes import FieldError, PerPosition, Shape, field_shapes, found, plain
from saferank.errors import UsageError
from saferank.files import JsonFileError, on_one_line, read_json, write_atomically
from saferank.verbs import Floats

_NAMING_KEYS = ("id", "model", "items")


class InstanceError(UsageError):
    """What is wrong with an instance, in one line."""


@dataclass(frozen=True, eq=False)  # arrays have no single truth of equality
class Instance:
    """One query under one click model; item number i is ``items[i]``.

    >>> Instance.of("pbm", attraction=[0.4, 0.1, 0.3], examination=[1, 0.6]).items
    ('item-1', 'item-2', 'item-3')
    """

    id: str  # the query
    model: Any  # the click model with its arrays
    model_name: str  # like "pbm"
    items: tuple[str, ...]  # in production's order
    about: str | None = None
    examination: tuple[float, ...] | None = None  # by position, as PBM has it; None when that is not known

    @classmethod
    def of(cls, model: str, *, id: str = "query", items: Sequence[str] | None = None, **fields: Any) -> "Instance":
        """An instance made of arrays or lists, checked as a file is.

        Args:
            model: The name of a click model.
            id: The name of the query.
            items: Names in production's order; None: item-1, item-2, and so on.
            **fields: ``attraction`` and the other fields of the click model.

        Returns:
            The instance.

        Raises:
            InstanceError: A field is missing, unknown, of a wrong size or out of range.

        """
        attraction = plain(fields.get("attraction"))
        many = len(attraction) if isinstance(attraction, list) else 1
        names = [f"item-{i + 1}" for i in range(many)] if items is None else items
        (made,) = checked_instances({"id": id, "model": model, "items": names, **fields})
        return made


def load_instances(path: str | os.PathLike[str]) -> list[Instance]:
    """The instances of a file.

    Args:
        path: An instance file (JSON).

    Returns:
        All instances of the file, checked.

    Raises:
        InstanceError: The file cannot be read, or an entry is not valid; the message names it.

    """
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
    return _checked(entries, f"{source_name}: instances")


def checked_instances(given: object) -> list[Instance]:
    """Instances that were made in Python: one or several, objects or dicts with the keys of a file."""
    if isinstance(given, Mapping) and "instances" in given:
        given = given["instances"]
    if isinstance(given, str | bytes) or not isinstance(given, Iterable | Instance):
        raise InstanceError(f"found {found(given)}, expected instances: objects of Instance, dicts, or a file")
    several = [given] if isinstance(given, Instance | Mapping) else list(given)
    checked = _checked([_as_in_a_file(each, f"[{i}]") for i, each in enumerate(several)], "")
    known = [each.examination if isinstance(each, Instance) else None for each in several]
    return [
        made
        if told is None
        else replace(made, examination=tuple(_examination(told, f"[{i}] (id {found(made.id)})").tolist()))
        for i, (made, told) in enumerate(zip(checked, known, strict=True))
    ]


def _as_in_a_file(value: object, where: str) -> object:
    """What a file would hold in place of an instance or a dict."""
    if not isinstance(value, Instance | Mapping):
        return plain(value)
    name = value.model_name if isinstance(value, Instance) else value.get("model")
    kind = CLICK_MODELS.get(name) if isinstance(name, str) else None
    if isinstance(value, Mapping):
        shapes = {} if kind is None else field_shapes(kind)
        return {key: shapes[key].write(each) if key in shapes else plain(each) for key, each in value.items()}
    if kind not in (None, type(value.model)):
        wanted = f"expected one of {kind.__name__}, which is {name!r}; Instance.of makes it of arrays"
        raise InstanceError(f"{where} (id {found(value.id)}): model: found {found(value.model)}, {wanted}")
    return entry_of(value) if kind is not None else {"id": value.id, "model": name}


def _examination(value: object, where: str) -> Floats:
    return _shaped(plain(value), "examination", get_args(PerPosition)[1], 0, where)  # type: ignore[no-any-return]


def _checked(entries: Sequence[object], source: str) -> list[Instance]:
    """The one check; ``source`` is what stands before the number of an instance in messages."""
    instances = [_instance(entry, _where(source, i, entry)) for i, entry in enumerate(entries)]
    _refuse_repeated(instances, source)
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
    return f"{source}[{index}] (id {found(name)})" if name is not None else f"{source}[{index}]"


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
    fields = {
        field: _shaped(_field(entry, field, where), field, shape, len(items), where) for field, shape in shapes.items()
    }
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


def _shaped(value: object, name: str, shape: Shape, n_items: int, where: str) -> Any:
    try:
        return shape.read(value, n_items)
    except FieldError as problem:
        raise InstanceError(f"{where}: {name}: {problem}") from None


def _refuse_repeated(instances: list[Instance], source: str) -> None:
    seen: dict[tuple[str, str], int] = {}
    for index, instance in enumerate(instances):
        first = seen.setdefault((instance.id, instance.model_name), index)
        if first != index:
            raise InstanceError(
                f"{source}[{index}] (id {found(instance.id)}): id: "
                f"instances[{first}] has the same id and model {instance.model_name}; rename or remove one"
            )


def entry_of(instance: Instance) -> dict[str, object]:
    """The JSON object of an instance, from which ``parse_instances`` makes the same one, its examination aside."""
    named = {"id": instance.id, "model": instance.model_name, "items": plain(instance.items)}
    shapes = field_shapes(type(instance.model))
    fields = {name: shape.write(getattr(instance.model, name)) for name, shape in shapes.items()}
    about = {} if instance.about is None else {"about": instance.about}
    return {**named, **fields, **about}
