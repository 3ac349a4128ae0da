"""Click logs: what a page is, the readers of six formats, the summary, and a synthetic log with planted users.

``read_log`` gives the pages of the most frequent queries as weighted distinct rows, ``summarize_log`` counts what is in
a file, ``split`` holds some pages out for evaluation, ``write_synthetic_log`` makes a log whose truth is known.
"""

from saferank.logs.reading import FORMATS, read_log, summarize_log
from saferank.logs.records import BadLines, ClickLog, DistinctPages, LogError, LogSummary, split
from saferank.logs.synthetic.writing import write_synthetic_log

__all__ = [
    "FORMATS",
    "BadLines",
    "ClickLog",
    "DistinctPages",
    "LogError",
    "LogSummary",
    "read_log",
    "split",
    "summarize_log",
    "write_synthetic_log",
]
