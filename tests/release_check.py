"""Build every distribution, install the built files into a clean environment, and look at what a user would get.

    python tests/release_check.py [--set-version 0.2.0]

Checks that all distributions carry one version, that each builds as wheel and sdist, that the wheels install together
with `pip check` clean, that each module imports and carries ``py.typed``, and that the commands run.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("tsim-core", "langchain-tsim", "langgraph-tsim", "llama-index-tsim", "scale-qa")
MODULES = (
    "tsim_core",
    "langchain_tsim",
    "langgraph_tsim",
    "llama_index.node_parser.tsim",
    "llama_index.retrievers.tsim",
    "llama_index.memory.tsim",
    "scale_qa",
)
COMMANDS = (("tsim", "--version"), ("scale-qa", "systems"))
VERSION = re.compile(r'__version__ = "([^"]+)"')


def version_files() -> dict[str, Path]:
    """The file of each distribution that holds its version."""
    found = {}
    for package in PACKAGES:
        text = (ROOT / "packages" / package / "pyproject.toml").read_text()
        match = re.search(r'\[tool\.hatch\.version\]\s*path = "([^"]+)"', text)
        assert match, f"{package} names no version file"
        found[package] = ROOT / "packages" / package / match[1]
    return found


def versions() -> dict[str, str]:
    """The version of each distribution."""
    return {package: VERSION.findall(path.read_text())[0] for package, path in version_files().items()}


def set_version(version: str) -> None:
    """Give all distributions a version."""
    for path in version_files().values():
        path.write_text(VERSION.sub(f'__version__ = "{version}"', path.read_text()))


def run(*command: str | Path) -> str:
    """Run a command; its output, or an error that shows it."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def main() -> None:
    """Check the release."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set-version", metavar="V", help="write this version into all distributions, and stop")
    arguments = parser.parse_args()
    if arguments.set_version:
        set_version(arguments.set_version)
        return
    if len(set(versions().values())) > 1:
        sys.exit(f"the distributions differ in version: {versions()}")
    with tempfile.TemporaryDirectory() as folder:
        dist, home = Path(folder, "dist"), Path(folder, "venv")
        for package in PACKAGES:
            run(sys.executable, "-m", "build", "--outdir", dist, ROOT / "packages" / package)
            print(f"built {package}")
        venv.create(home, with_pip=True)
        python = home / "bin" / "python"
        run(python, "-m", "pip", "install", "-q", *sorted(dist.glob("*.whl")))
        print(run(python, "-m", "pip", "check").strip())
        for module in MODULES:
            typed = f"import importlib.resources as r, {module} as m; assert r.files(m).joinpath('py.typed').is_file()"
            run(python, "-W", "ignore", "-c", typed)
            print(f"imports, typed: {module}")
        for command, *options in COMMANDS:
            print(run(home / "bin" / command, *options).splitlines()[0])


if __name__ == "__main__":
    main()
