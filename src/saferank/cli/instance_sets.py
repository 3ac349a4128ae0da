"""Which instances a command plays: a file or the embedded set, some models, some queries."""

from saferank.cli.errors import InputError, blaming
from saferank.cli.options import names_in
from saferank.click_models import click_model
from saferank.embedded import MODELS, embedded_instances
from saferank.instances import Instance, InstanceError, check_positions, first_queries, load_instances

EMBEDDED = "embedded"
FEWEST_EMBEDDED = 2
"""The embedded set cannot be made smaller, but fewer of its queries can be taken."""


def chosen_models(text: str | None) -> tuple[str, ...] | None:
    """The click models of ``--models``, all known; None for all."""
    if text is None:
        return None
    names = names_in(text, "--models")
    with blaming("--models"):
        for name in names:
            click_model(name)
    return names


def embedded_set(models: str | None, queries: int | None, seed: int = 1) -> list[Instance]:
    """The first queries of the embedded set, under the chosen models."""
    wanted = chosen_models(models) or MODELS
    count = 20 if queries is None else queries
    with blaming("--models"):
        made = embedded_instances(max(count, FEWEST_EMBEDDED), models=wanted, seed=seed)
    return first_queries(made, count)


def instance_set(source: str, models: str | None, queries: int | None, positions: int) -> list[Instance]:
    """The instances to play, all of them with room for ``positions`` positions."""
    try:
        instances = embedded_set(models, queries) if source == EMBEDDED else _from_file(source, models, queries)
        for instance in instances:
            check_positions(instance, positions, source)
    except InstanceError as problem:
        raise InputError(str(problem)) from problem
    return instances


def _from_file(path: str, models: str | None, queries: int | None) -> list[Instance]:
    wanted = chosen_models(models)
    instances = load_instances(path)
    there = list(dict.fromkeys(instance.model_name for instance in instances))
    for name in wanted or ():
        if name not in there:
            raise InputError(f"--models: {path} has no instance of model {name}; it has {', '.join(there)}")
    of_models = [instance for instance in instances if wanted is None or instance.model_name in wanted]
    return of_models if queries is None else first_queries(of_models, queries)
