"""What can be wrong with a log: the error that stops a reader, and the kinds of lines that are only counted."""

from saferank.errors import UsageError

LONGEST_PAGE = 100
"""Items on a page; click models cover as many positions."""
LONGEST_SESSION = 4096
"""Pages that can wait for their clicks: all of one session."""

GOOD, FIELDS, NUMBER, RECORD, ORPHAN, LONG_PAGE, LONG_SESSION, TWICE, NOT_JSON, SHAPE, FULL = range(11)
"""What became of a line. ``FULL`` is no fault of the line: it must be read again when the batch is emptied."""

KINDS = {
    FIELDS: "wrong number of fields",
    NUMBER: "not a number",
    RECORD: "unknown record type",
    ORPHAN: "click without its page",
    LONG_PAGE: f"page of more than {LONGEST_PAGE} items",
    LONG_SESSION: f"session of more than {LONGEST_SESSION} pages",
    TWICE: "item twice on its page",
    NOT_JSON: "not JSON",
    SHAPE: "not an object with query, items and clicked",
}
"""Bad lines by what is wrong with them, the first thing from the left."""


class LogError(UsageError):
    """Why a log cannot be used, in one line that begins with its name."""
