"""Other programs' protocols, translated into the two calls of the service and back.

Each adapter reads a body, makes a ``RankCall`` or ``FeedbackCall`` of it, and puts the answer into the form that its
clients expect. They share ``calls.py``, the only place that asks the server, and add nothing to it.
"""
