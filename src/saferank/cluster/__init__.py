"""An existing Dask cluster as the engine of an experiment: the same runs, the same results, other machines.

``Cluster`` (``engine.py``) hands tasks out and survives workers that die; ``worker.py`` is what a worker runs.
"""

from saferank.cluster.engine import AddressError, Cluster, ClusterError, connected

__all__ = ["AddressError", "Cluster", "ClusterError", "connected"]
