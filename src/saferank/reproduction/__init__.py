"""The paper from end to end: a click log, its most frequent queries, click models, five algorithms, results.

``protocol.py`` checks what is asked and says what is run, ``log.py`` makes the log when there is none and the click
models, ``parts.py`` finds the paper's two special queries and lists everything that is played, ``folder.py`` knows the
folder of a run and writes the results.
"""
