"""Logs for machines: one JSON object a line, to stderr."""

import json
import logging
import sys
import time
from typing import Any

LOGGER = logging.getLogger("saferank.service")
_OWN = "saferank_fields"
_said_by: dict[str, str] = {}


class JsonLines(logging.Formatter):
    """A record as one line of JSON: time, level, event, and whatever belongs to it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **_said_by,
            **getattr(record, _OWN, {}),
        }
        if record.name != LOGGER.name:
            line["logger"] = record.name
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True, default=str)


def log(level: int, event: str, *, error: BaseException | None = None, **fields: Any) -> None:
    """Log an event with its fields."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, event, exc_info=error, extra={_OWN: fields})


def sign_lines(server: str) -> None:
    """From now on lines name the server of this process, as the store and other servers know it."""
    _said_by["server"] = server


def log_to_stderr(level: str) -> None:
    """Send the logs of the package, and the warnings of all others, to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.captureWarnings(True)
    for name, own_level in (("", "warning"), ("saferank", level)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(own_level.upper())
        logger.propagate = False
