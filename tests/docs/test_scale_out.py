"""docs/engineers/scale-out.md: its commands are run as they stand, on a real PostgreSQL; its compose file is read."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import yaml  # type: ignore[import-untyped]

from saferank.service.settings import Settings
from tests.postgres_process import PostgresProcess

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "engineers" / "scale-out.md"
COMPOSE = DOCS / "engineers" / "compose-three-servers.yaml"
ADDRESS = "postgresql://postgres@localhost/saferank"
LONGEST = 800
"""Seconds: a machine without compiled code compiles first."""


def the_script() -> str:
    """All commands of the page except those that install something."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return "\n".join(line for line in "\n".join(blocks).splitlines() if not line.startswith("pip install"))


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def run_to_its_end(script: str, environment: dict[str, str], folder: Path) -> tuple[int, str, str]:
    """Exit code, output and errors. When it takes too long its servers are ended with it."""
    command = ["bash", "-e", "-m", "-c", script]  # -m: kill %1 needs job control
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, cwd=folder, text=True, stdout=pipe, stderr=pipe) as process:
        try:
            output, errors = process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
            process.kill()
            raise
        return process.returncode, output, errors


def test_the_commands_give_three_servers(tmp_path: Path) -> None:
    postgres = PostgresProcess()
    try:
        script = the_script().replace(ADDRESS, postgres.address("saferank"))
        for port in ("8001", "8002", "8003"):
            script = script.replace(port, str(free_port()))
        path = f"{postgres.programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        changes = {"PATH": path, "PGHOST": str(postgres.socket.parent), "PGUSER": "postgres"}
        settings = {"SAFERANK_SERVE_POLICY": "kl-ucb-br", "SAFERANK_SERVE_LOG_LEVEL": "error"}
        code, output, errors = run_to_its_end(script, {**os.environ, **changes, **settings}, tmp_path)
    finally:
        postgres.stop()
    assert code == 0, output + errors
    answers = [json.loads(found) for found in re.findall(r"\{.*\}", output.replace("}{", "}\n{"))]
    feedback, switch, page = answers
    assert feedback["accepted"] and not feedback["late"]
    assert switch["on"]
    assert page["mode"] == "off" and page["ranking"] == ["a", "b", "c"]


def test_the_compose_file_starts_what_the_page_says() -> None:
    services = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
    servers = [name for name in services if name.startswith("server-")]
    assert len(servers) == 3
    for name in servers:
        service = services[name]
        assert service["command"][:2] == ["saferank", "serve"]
        names = {variable.removeprefix("SAFERANK_SERVE_").lower() for variable in service["environment"]}
        assert names <= set(Settings.__struct_fields__)
        assert service["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert services["postgres"]["image"] == "postgres:18"
    assert COMPOSE.name in PAGE.read_text(encoding="utf-8")
