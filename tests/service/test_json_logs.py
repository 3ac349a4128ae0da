"""Logs as lines of JSON."""

import json
import logging
import subprocess
import sys

from saferank.service.json_logs import LOGGER, JsonLines
from tests.cli.command_line import environment


def line(**extra: object) -> dict[str, object]:
    record = logging.LogRecord(LOGGER.name, logging.WARNING, "file", 1, "something 100% odd", (), None)
    record.__dict__.update(extra)
    made: dict[str, object] = json.loads(JsonLines().format(record))
    return made


def test_a_record_is_one_object() -> None:
    made = line(saferank_fields={"path": "/a\nb", "context": "grün"})
    assert (made["level"], made["event"], made["path"], made["context"]) == (
        "warning", "something 100% odd", "/a\nb", "grün",
    )  # fmt: skip
    assert str(made["time"]).endswith("Z")


def test_an_error_brings_its_traceback_on_the_same_line() -> None:
    error = RuntimeError("broken")
    record = logging.LogRecord("other", logging.ERROR, "f", 1, "x", (), (type(error), error, None))
    text = JsonLines().format(record)
    assert "\n" not in text
    made = json.loads(text)
    assert "RuntimeError: broken" in made["traceback"]
    assert made["logger"] == "other"


OTHERS = """
import logging, warnings
from saferank.service.json_logs import log_to_stderr
log_to_stderr("error")
logging.getLogger("psycopg").warning("query cancellation failed")
logging.getLogger("psycopg").info("not told")
logging.getLogger("asyncio").error("never retrieved")
logging.getLogger("uvicorn.error").error("Exception in ASGI application\\n")
warnings.warn("old")
"""


def test_what_libraries_say_is_lines_of_json_as_well() -> None:
    command = [sys.executable, "-c", OTHERS]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [made["logger"] for made in lines] == ["psycopg", "asyncio", "uvicorn.error", "py.warnings"]
    assert lines[0]["event"] == "query cancellation failed"
