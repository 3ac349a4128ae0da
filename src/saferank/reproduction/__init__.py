"""The paper from end to end: a click log, its most frequent queries, click models, five algorithms, results.

``protocol.py`` says what is run, ``planted.py`` makes the log when there is none, ``special.py`` finds the paper's two
special queries, ``parts.py`` lists everything that is played, ``pieces.py`` keeps what is finished, ``folder.py`` knows
the folder of a run, ``outcome.py`` writes the results.
"""
