"""Instances: a query, its items in the order of production, and the click model of its users.

``instance_files.py`` is the file format and the one check of files and objects, ``embedded.py`` a set that is made from
a seed. May import click models.
"""

from saferank.instances.embedded import choose_instances, embedded_instances
from saferank.instances.instance_files import (
    Instance,
    InstanceError,
    check_positions,
    checked_instances,
    entry_of,
    first_queries,
    load_instances,
    parse_instances,
    positions_problem,
    save_instances,
    with_examination,
)

__all__ = [
    "Instance",
    "InstanceError",
    "check_positions",
    "checked_instances",
    "choose_instances",
    "embedded_instances",
    "entry_of",
    "first_queries",
    "load_instances",
    "parse_instances",
    "positions_problem",
    "save_instances",
    "with_examination",
]
