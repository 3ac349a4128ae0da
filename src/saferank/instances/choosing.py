"""Which instances are played: a file or the embedded set, some click models, the first queries."""

import os
from collections.abc import Sequence

from saferank.click_models import click_model
from saferank.errors import ArgumentError, argument, whole_number
from saferank.instances.embedded import MODELS, embedded_instances
from saferank.instances.instance_files import Instance, first_queries, load_instances

EMBEDDED = "embedded"


def choose_instances(
    source: str | os.PathLike[str] = EMBEDDED,
    models: Sequence[str] | None = None,
    queries: int | None = None,
    seed: int = 1,
) -> list[Instance]:
    """The instances of a file or of the embedded set, of these click models and of the first queries only."""
    with argument("models"):
        for name in models or ():
            click_model(name)
    if queries is not None:
        whole_number(queries, "queries")
    if os.fspath(source) == EMBEDDED:
        return embedded_instances(20 if queries is None else queries, models=tuple(models or MODELS), seed=seed)
    return _from_file(source, models, queries)


def _from_file(path: str | os.PathLike[str], models: Sequence[str] | None, queries: int | None) -> list[Instance]:
    instances = load_instances(path)
    there = list(dict.fromkeys(instance.model_name for instance in instances))
    for name in models or ():
        if name not in there:
            has = f"{os.fspath(path)} has no instance of model {name}; it has {', '.join(there)}"
            raise ArgumentError("models", has)
    of_models = [instance for instance in instances if models is None or instance.model_name in models]
    return of_models if queries is None else first_queries(of_models, queries)
