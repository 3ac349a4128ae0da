"""Logs as lines of JSON."""

import json
import logging

from saferank.service.json_logs import LOGGER, JsonLines


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
