"""An existing Dask cluster as the engine of an experiment: the same runs, the same results, other machines.

``Cluster`` (``engine.py``) hands tasks out and survives workers that die; ``worker.py`` is what a worker runs;
``shipping.py`` takes the source of plug-ins there.
"""

from saferank.errors import ClusterError
from saferank.simulation.cluster.engine import AddressError, Cluster, connected
from saferank.simulation.cluster.shipping import NotInAFileError, sources_of

__all__ = ["AddressError", "Cluster", "ClusterError", "NotInAFileError", "connected", "sources_of"]
