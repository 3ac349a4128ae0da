"""The file of a backup: a ZIP archive with one part for each table and a manifest.

A part is text, one row a line, each a JSON list; bytes are in base64. The manifest is written last. It names the form
of the file and has the number of rows and the SHA-256 of every part, so a file that was cut off or changed is noticed
before anything of it is used.
"""

import base64
import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

from saferank.store.contract import StoreError
from saferank.store.tables import CHUNK, TABLES, Chunk, Row

FORM = 1
_COMPRESSION = 3
"""Records of pages compress by half at any level."""
_MANIFEST = "manifest.json"
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, NotImplementedError, RuntimeError)
"""What reading a damaged archive may raise."""


class BackupError(StoreError):
    """Why a file cannot be restored, in a sentence that begins with its name."""


class Manifest(NamedTuple):
    """What a backup says of itself."""

    form: int
    saferank: str  # the version that wrote it
    taken_at: int  # milliseconds since 1970
    rows: dict[str, int]  # by table
    sha256: dict[str, str]  # by table


class ArchiveWriter:
    """Takes chunks, which come table by table in the order of ``TABLES``, and then writes the manifest."""

    def __init__(self, file: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION)
        self._part: IO[bytes] | None = None
        self._digests: dict[str, Any] = {}
        self.rows: dict[str, int] = {}

    def add(self, chunk: Chunk) -> None:
        """Write some rows."""
        if chunk.table not in self.rows:
            self._begin(chunk.table)
        assert self._part is not None
        pack = _packer(chunk.table)
        data = b"".join(pack(row) for row in chunk.rows)
        self._part.write(data)
        self._digests[chunk.table].update(data)
        self.rows[chunk.table] += len(chunk.rows)

    def finish(self, saferank: str, taken_at: int) -> None:
        """Write the manifest: now the file is a whole backup, once it is closed."""
        self._end()
        digests = {name: digest.hexdigest() for name, digest in self._digests.items()}
        facts = Manifest(FORM, saferank, taken_at, self.rows, digests)._asdict()
        self._zip.writestr(_MANIFEST, json.dumps(facts, indent=1))

    def close(self) -> None:
        """Write the end of the archive."""
        self._end()
        self._zip.close()

    def _begin(self, table: str) -> None:
        self._end()
        self._part = self._zip.open(_part(table), "w", force_zip64=True)
        self._digests[table], self.rows[table] = hashlib.sha256(), 0

    def _end(self) -> None:
        if self._part is not None:
            self._part.close()


class ArchiveReader:
    """A backup that is whole: all of it was compared with its manifest when this was made."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except OSError as problem:
            raise BackupError(f"{path}: cannot be read: {problem.strerror or problem}") from problem
        except _BROKEN as problem:
            raise BackupError(f"{path}: is not a backup, or was cut off ({problem}); take another") from problem
        try:
            self.manifest = self._read_manifest()
            for name in TABLES:
                self._check(name)
        except BaseException as problem:
            self._zip.close()
            if isinstance(problem, _BROKEN) and not isinstance(problem, BackupError):
                raise BackupError(f"{path}: is damaged ({problem}); take another backup") from problem
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._zip.close()

    def chunks(self) -> Iterator[Chunk]:
        """All rows in the order of ``TABLES``."""
        for name in TABLES:
            unpack, rows = _unpacker(name), list[Row]()
            with self._zip.open(_part(name)) as part:
                for line in part:
                    rows.append(unpack(line))
                    if len(rows) == CHUNK:
                        yield Chunk(name, rows)
                        rows = []
            yield Chunk(name, rows)

    def _read_manifest(self) -> Manifest:
        facts = json.loads(self._zip.read(_MANIFEST))
        if facts["form"] != FORM:
            raise BackupError(
                f"{self._path}: is a backup of form {facts['form']}; this saferank reads form {FORM}: "
                f"use saferank {facts['saferank']}"
            )
        if set(facts["rows"]) != set(TABLES):
            raise BackupError(f"{self._path}: is damaged: its tables are {', '.join(facts['rows'])}")
        return Manifest(**facts)

    def _check(self, name: str) -> None:
        digest, count = hashlib.sha256(), 0
        with self._zip.open(_part(name)) as part:
            for line in part:
                digest.update(line)
                count += 1
        if (digest.hexdigest(), count) != (self.manifest.sha256[name], self.manifest.rows[name]):
            raise BackupError(f"{self._path}: is damaged: table {name} is not as it was written; take another backup")


def _part(name: str) -> str:
    return f"{name}.jsonl"


def _packer(name: str) -> Callable[[Row], bytes]:
    places = _binary_places(name)

    def pack(row: Row) -> bytes:
        values: list[Any] = list(row)
        for place in places:
            if values[place] is not None:
                values[place] = base64.b64encode(values[place]).decode("ascii")
        return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    return pack


def _unpacker(name: str) -> Callable[[bytes], Row]:
    places = _binary_places(name)

    def unpack(line: bytes) -> Row:
        values: list[Any] = json.loads(line)
        for place in places:
            if values[place] is not None:
                values[place] = base64.b64decode(values[place])
        return tuple(values)

    return unpack


def _binary_places(name: str) -> list[int]:
    table = TABLES[name]
    return [table.columns.index(column) for column in table.binary]
