"""HTTP: routes, bodies, limits, metrics, and the server that runs them.

Reaches everything else through ``service/interface.py``.
"""
