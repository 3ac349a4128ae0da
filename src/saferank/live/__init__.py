"""The live side: one page at a time, clicks whenever they come, exact saved states.

``Ranker`` serves one query in one process; ``Learner`` is the part of it that the service shares; ``replay`` folds a
log into a state. Nothing here imports the simulator.
"""
