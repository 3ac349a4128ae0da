"""Everything that a release has in dist/: wheels and sdists of saferank and of its client, the browser script.

They are checked, and the wheel is installed into empty environments with each extra; size and import time of it.

make package        needs a package registry: every extra is really installed. A few minutes.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import urllib.request
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
TRIALS = {
    "": "from saferank import Ranker, simulate, fit",
    "report": "import matplotlib, jinja2; from saferank import report",
    "pandas": "import pandas",
    "cluster": "import distributed, saferank.simulation.cluster",
    "service": "import saferank.service.http.process",
    "postgres": "import psycopg",
    "traces": "import opentelemetry.trace",
}
"""What must work in an environment that has the wheel with this extra and nothing else."""


def main() -> None:
    """Build, check, install; the first thing that fails ends it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--extras", help="only these, with commas; 'core' is the wheel without any, 'client' the client alone"
    )
    asked = parser.parse_args().extras
    wheel = build()
    for name in [*known_extras(), "client"] if asked is None else asked.replace("core", "").split(","):
        with tempfile.TemporaryDirectory(prefix="saferank-package-") as folder:
            if name == "client":
                client = str(next(DIST.glob("saferank_client-*.whl")))
                install(client, name, "from saferank_client import AsyncClient, Client", Path(folder))
            else:
                try_extra(wheel, name, Path(folder))


def build() -> Path:
    """Wheels and sdists into an empty dist/, as twine accepts them, and the browser script as npm packs it."""
    for stale in (DIST, ROOT / "build" / "lib"):
        shutil.rmtree(stale, ignore_errors=True)
    for source in (ROOT / "clients" / "python", ROOT):
        run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(DIST), str(source)])
    run([sys.executable, "-m", "twine", "check", "--strict", *map(str, sorted(DIST.iterdir()))])
    pack_browser_script()
    print("\n".join(f"{file.name}: {file.stat().st_size / 1e3:,.0f} kB" for file in sorted(DIST.iterdir())), flush=True)
    return next(DIST.glob("saferank-*.whl"))


def pack_browser_script() -> None:
    """The package of clients/js: a tar archive in which everything is below ``package/``."""
    folder = ROOT / "clients" / "js"
    about = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    with tarfile.open(DIST / f"{about['name']}-{about['version']}.tgz", "w:gz") as archive:
        for name in ("package.json", "README.md", *about["files"]):
            archive.add(folder / name, f"package/{name}")


def known_extras() -> list[str]:
    """The core and every extra for users; an extra without a trial is an error."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    if unknown := set(declared) - set(TRIALS):
        raise SystemExit(
            f"extras without a trial in {Path(__file__).name}: {', '.join(sorted(unknown))}; add one to TRIALS"
        )
    return ["", *sorted(declared)]


def try_extra(wheel: Path, extra: str, folder: Path) -> None:
    """Install the wheel with one extra into an empty environment and use it, away from the source."""
    install(f"{wheel}[{extra}]" if extra else str(wheel), extra or "core", TRIALS[extra], folder)
    if extra == "":
        use_core(folder)
    if extra == "service":
        use_service(folder)


def install(package: str, name: str, trial: str, folder: Path) -> None:
    """Install a package into an empty environment, say how large that is, and run a line of Python there."""
    venv.create(folder / "env", with_pip=True)
    python = str(folder / "env" / "bin" / "python")
    before = installed_bytes(folder)
    run([python, "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), package], folder)
    print(f"{name}: {(installed_bytes(folder) - before) / 1e6:,.0f} MB installed", flush=True)
    run([python, "-c", trial], folder)


def use_core(folder: Path) -> None:
    """Play two queries; say how long imports take."""
    command = [
        "simulate",
        "--queries",
        "2",
        "--models",
        "pbm",
        "--rounds",
        "1000",
        "--repetitions",
        "2",
        "--out",
        "first",
    ]
    run([str(folder / "env" / "bin" / "saferank"), *command], folder)
    run(
        [str(folder / "env" / "bin" / "python"), str(ROOT / "benchmarks" / "package" / "import_time.py"), "--core"],
        folder,
    )


def use_service(folder: Path) -> None:
    """Start the demo, ask for its health and its dashboard, stop it."""
    command = [str(folder / "env" / "bin" / "saferank"), "serve", "--demo", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as service:
        try:
            assert service.stdout is not None
            found = re.search(r"http://[\d.:]+", service.stdout.readline())
            if found is None:
                raise SystemExit("saferank serve --demo did not print its address")
            for path in ("/healthz", "/", "/openapi.json"):
                with urllib.request.urlopen(found.group() + path, timeout=60) as answer:
                    print(f"serve --demo: GET {path} {answer.status}", flush=True)
        finally:
            service.terminate()
    print(f"serve --demo: exit code {service.returncode}", flush=True)


def installed_bytes(folder: Path) -> int:
    """Bytes of all files of an environment."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def run(command: Sequence[str], folder: Path = ROOT) -> None:
    """Run a command; when it fails, show what it said and stop."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    if "--core" in command:
        print(done.stdout, end="", flush=True)


if __name__ == "__main__":
    main()
