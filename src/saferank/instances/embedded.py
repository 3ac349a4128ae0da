"""The embedded instance set, made from a seed in the shape of real web search, and which instances are played.

attraction[i] = (mean of three draws u^(1/m - 1), u uniform, each of mean m = profile[i]) * examination[i]^bias(model)

The profile falls from 0.4 at production's first rank to about 0.15 at ranks 5 to 10, with much noise, so that about two
thirds of the best five items stand in the original top five. Models estimated from the same log disagree on the items
at the bottom: whatever position bias a model cannot explain stays in its attractions. ``bias`` is that remainder: 0
for PBM, which explains it fully, 1 for CM, which has no notion of it.

Two queries have a property by construction, under every model: ``optimal-original``, whose items are in strictly
decreasing order of attraction (the best order under PBM, CM and UBM; nearly so under the others), and
``worst-original``, whose first five items are all worse than five others.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saferank.click_models import CCM, CM, DBN, DCM, PBM, UBM, click_model
from saferank.errors import ArgumentError, argument, several, whole_number
from saferank.instances.instance_files import Instance, first_queries, load_instances
from saferank.randomness import Words, stream, uniform
from saferank.verbs import Floats

OPTIMAL = "optimal-original"
WORST = "worst-original"
MODELS = ("pbm", "cm", "dcm", "dbn", "ubm", "ccm")
TOP = 5
"""The two special queries are special for original rankings of this length."""

_PROFILE = np.array([0.40, 0.25, 0.21, 0.18, 0.16, 0.14])
_EXAMINATION = np.array([1.0, 0.96, 0.76, 0.59, 0.46, 0.39, 0.33, 0.28, 0.26, 0.27])
_BIAS = {"pbm": 0.0, "cm": 1.0, "dcm": 0.15, "dbn": 0.6, "ubm": -0.15, "ccm": 0.6}
_LOWEST, _HIGHEST = 0.04, 0.88


def embedded_instances(
    queries: int = 20, n_items: int = 10, models: Sequence[str] = MODELS, seed: int = 1
) -> list[Instance]:
    """Every query under every model; query q is the same however many there are.

    Args:
        queries: Number of queries, at least 1.
        n_items: Number of items of each query, at least 10.
        models: Names of click models.
        seed: Seed of the attractions.

    Returns:
        An instance for every query and model, by query.

    Raises:
        ArgumentError: Too few queries or items, or a model that the set does not have.

    >>> first = embedded_instances(queries=3, models=("pbm",))[0]
    >>> first.id, first.items[:2], first.model.attraction[:3].tolist()
    ('optimal-original', ('doc-1', 'doc-2'), [0.3974, 0.2656, 0.2582])

    """
    n_queries = whole_number(queries, "queries")
    items_each = whole_number(n_items, "n_items", at_least=2 * TOP)
    unknown = [name for name in models if name not in _BIAS]
    if unknown:
        known = ", ".join(MODELS)
        raise ArgumentError("models", f"no embedded instances for click model {unknown[0]!r}; known ones: {known}")
    return [_instance(name, query, items_each, seed) for query in range(n_queries) for name in models]


def _instance(name: str, query: int, n_items: int, seed: int) -> Instance:
    identity = {0: OPTIMAL, 1: WORST}.get(query, f"query-{query + 1:02d}")
    profile = _PROFILE[-1:] if identity == WORST else _PROFILE  # no engine hides an item that stands out
    attraction = _noisy(_extended(profile, n_items), stream(seed, "attraction", query))
    biased = np.minimum(attraction * _extended(_EXAMINATION, n_items) ** _BIAS[name], _HIGHEST)
    arranged = _ARRANGED.get(identity, _as_it_is)(biased)
    model = _MODEL[name](arranged.round(4), stream(seed, "satisfaction", query))
    items = tuple(f"doc-{i + 1}" for i in range(n_items))
    return Instance(identity, model, name, items, examination=tuple(_extended(_EXAMINATION, n_items).tolist()))


def _extended(values: Floats, n: int) -> Floats:
    """``values``, the last one repeated up to n entries."""
    return np.append(values, np.full(max(0, n - len(values)), values[-1]))[:n]


def _noisy(means: Floats, rng: Words) -> Floats:
    """Independent numbers around ``means``, skewed like attractions, inside the allowed range."""
    width = _HIGHEST - _LOWEST
    powers = width / (means - _LOWEST) - 1
    draws = [[uniform(rng) ** power for power in powers] for _ in range(3)]
    mean: Floats = np.array(draws).mean(axis=0)
    return _LOWEST + width * mean


def _as_it_is(attraction: Floats) -> Floats:
    return attraction


def _decreasing(attraction: Floats) -> Floats:
    """The same numbers in decreasing order, pulled apart so that rounding leaves no ties."""
    return np.sort(attraction)[::-1] * 0.9 + np.linspace(0.055, 0.005, len(attraction))


def _best_at_the_bottom(attraction: Floats) -> Floats:
    """The same numbers with the best five, in decreasing order, behind all others."""
    return np.roll(_decreasing(attraction), -TOP)


_ARRANGED: dict[str, Callable[[Floats], Floats]] = {OPTIMAL: _decreasing, WORST: _best_at_the_bottom}


def _pbm(attraction: Floats, rng: Words) -> PBM:
    return PBM(attraction, _extended(_EXAMINATION, len(attraction)))


def _cm(attraction: Floats, rng: Words) -> CM:
    return CM(attraction)


def _dcm(attraction: Floats, rng: Words) -> DCM:
    """Users leave most readily after the first result, the best one, and at the end of the page."""
    continuation = _extended(np.array([0.36, 0.5, 0.53, 0.55]), len(attraction))
    continuation[-3:] = 0.46, 0.33, 0.02
    return DCM(attraction, continuation)


def _dbn(attraction: Floats, rng: Words) -> DBN:
    """What attracts more also satisfies more."""
    satisfaction = _noisy(0.08 + 0.5 * attraction, rng)
    return DBN(attraction, satisfaction.round(4), 0.98)


def _ubm(attraction: Floats, rng: Words) -> UBM:
    """Users look right below their last click, and further down the rarer the higher up it was."""
    n = len(attraction)
    examination = np.zeros((n, n))
    for r in range(n):
        examination[r, 0] = 0.98 * 0.76**r
        for last in range(1, r + 1):
            examination[r, last] = 0.99 * min(0.44 + 0.055 * last, 0.9) ** (r - last)
    return UBM(attraction, examination.round(4))


def _ccm(attraction: Floats, rng: Words) -> CCM:
    return CCM(attraction, 0.985, 0.92, 0.03)


_MODEL: dict[str, Callable[[Floats, Words], Any]] = {
    "pbm": _pbm,
    "cm": _cm,
    "dcm": _dcm,
    "dbn": _dbn,
    "ubm": _ubm,
    "ccm": _ccm,
}


EMBEDDED = "embedded"


def choose_instances(
    source: str | os.PathLike[str] = EMBEDDED,
    models: Sequence[str] | None = None,
    queries: int | None = None,
    seed: int = 1,
) -> list[Instance]:
    """The instances of a file or of the embedded set, of these click models and of the first queries only."""
    models = None if models is None else several(models, "models")
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
