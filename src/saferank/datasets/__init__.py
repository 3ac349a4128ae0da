"""Click logs: what a page is, the readers of three formats, the summary, and a synthetic log with planted users.

``read_log`` gives the pages of the most frequent queries as weighted distinct rows, ``summarize_log`` tells what is in
a file, ``split`` holds some pages out for evaluation, ``write_synthetic_log`` makes a log whose truth is known.
"""

from saferank.datasets.errors import LogError
from saferank.datasets.reading import FORMATS, read_log, summarize_log
from saferank.datasets.sessions import ClickLog, Pages, split
from saferank.datasets.summary import BadLines, LogSummary
from saferank.datasets.synthetic import write_synthetic_log

__all__ = [
    "FORMATS",
    "BadLines",
    "ClickLog",
    "LogError",
    "LogSummary",
    "Pages",
    "read_log",
    "split",
    "summarize_log",
    "write_synthetic_log",
]
