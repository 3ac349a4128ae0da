"""Simulated users against policies: the compiled loop, repetitions, engines that play them, results, timing.

``saferank.simulate`` is the function for experiments; what it is made of is exported here. May import policies, click
models and instances.
"""

from saferank.simulation.engine import Gathered, SimulationEngine, Threads, simulate
from saferank.simulation.experiment import Cell, Plan, cells_of, default_checkpoints, run
from saferank.simulation.results import Result, ResultsError, read_results, write_results
from saferank.simulation.runs import MEASURES, Runs

__all__ = [
    "MEASURES",
    "Cell",
    "Gathered",
    "Plan",
    "Result",
    "ResultsError",
    "Runs",
    "SimulationEngine",
    "Threads",
    "cells_of",
    "default_checkpoints",
    "read_results",
    "run",
    "simulate",
    "write_results",
]  # fmt: skip
