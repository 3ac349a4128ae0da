"""A synthetic log as one call: plant the users, write the log and, if asked for, the truth about them."""

import os
from dataclasses import dataclass
from pathlib import Path

from saferank.errors import argument, whole_number, writing
from saferank.files import check_output_file
from saferank.instances import Instance, save_instances
from saferank.instances.embedded import MODELS
from saferank.logs.lengths import check_lengths
from saferank.logs.records import RANKING_LENGTH
from saferank.logs.synthetic.writing import planted_instances, write_synthetic_log
from saferank.progress import SESSIONS, progress_of


@dataclass(frozen=True)
class SyntheticLog:
    """The log that was written, and its users as the log names them."""

    path: Path
    sessions: int
    users: list[Instance]


def synthesize_log(
    out: str | os.PathLike[str],
    sessions: int = 100_000,
    queries: int = 20,
    model: str = "pbm",
    *,
    page_length: int = RANKING_LENGTH,
    items: int | None = None,
    seed: int = 0,
    truth: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> SyntheticLog:
    """Write a log in the format yandex-personalized, packed if its name ends in ``.gz``, whose users are known.

    The users are those of the embedded instances, ``items`` of them a query (None: 10, or those of a page). With more
    items than a page shows, those beyond it are on some of the pages. ``truth`` is an instance file to write the users
    to. Both files are written atomically. What cannot be used is an ``ArgumentError``, before anything is written.
    """
    whole_number(sessions, "sessions")
    check_lengths(page_length, items)
    with argument("model"):
        if model not in MODELS:
            raise ValueError(f"no embedded instances for click model {model!r}; known ones: {', '.join(MODELS)}")
    planted = planted_instances(queries, model, n_items=items or max(page_length, RANKING_LENGTH))
    wide = items is not None and items > page_length
    path = Path(out)
    check_output_file(path)
    with writing(path), progress_of(progress).meter(sessions, SESSIONS) as meter:
        users = write_synthetic_log(path, planted, sessions, seed, meter, page_length=page_length, all_items=wide)
    if truth is not None:
        with writing(truth):
            save_instances(truth, users, about=f"users of a synthetic log of {sessions} sessions, seed {seed}")
    return SyntheticLog(path, sessions, users)
