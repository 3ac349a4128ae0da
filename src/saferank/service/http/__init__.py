"""HTTP: routes, bodies, limits, metrics, and the process that runs them.

Reaches everything else through ``service/server.py``.
"""
