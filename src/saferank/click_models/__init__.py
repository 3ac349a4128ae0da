"""Users: how a page is clicked. One model per file; ``CLICK_MODELS`` knows them by name.

A model is a NamedTuple whose fields declare their shapes (``shapes.py``), ``attraction`` first, with two verbs:
``click`` and ``expected_clicks``. A new one costs a file and a line here, or a call of ``register`` from elsewhere.
"""

from saferank._kernel import implemented
from saferank.click_models.ccm import CCM
from saferank.click_models.cm import CM
from saferank.click_models.dbn import DBN
from saferank.click_models.dcm import DCM
from saferank.click_models.pbm import PBM
from saferank.click_models.shapes import field_shapes
from saferank.click_models.ubm import UBM
from saferank.errors import unknown
from saferank.verbs import click, expected_clicks

__all__ = ["CCM", "CLICK_MODELS", "CM", "DBN", "DCM", "PBM", "UBM", "click_model", "register"]

CLICK_MODELS: dict[str, type] = {"pbm": PBM, "cm": CM, "dcm": DCM, "dbn": DBN, "ubm": UBM, "ccm": CCM}


def click_model(name: str) -> type:
    """The class of the click model of this name.

    >>> click_model("pbm").__name__
    'PBM'
    """
    if name not in CLICK_MODELS:
        raise ValueError(unknown("click model", name, CLICK_MODELS))
    return CLICK_MODELS[name]


def register(name: str, kind: type) -> None:
    """Make a click model known by ``name`` to instance files, experiments and the command line."""
    if CLICK_MODELS.get(name, kind) is not kind:
        raise ValueError(f"click model {name!r} exists already: {CLICK_MODELS[name].__name__}; choose another name")
    for verb in (click, expected_clicks):
        if implemented(verb, kind) is None:
            raise ValueError(
                f"click model {name!r} does not implement {verb.__name__}() for {kind.__name__}; decorate a function "
                f"with @implements({verb.__name__}, {kind.__name__})"
            )
    if next(iter(field_shapes(kind)), None) != "attraction":
        raise ValueError(f"the first field of click model {name!r} must be attraction: PerItem")
    CLICK_MODELS[name] = kind
