"""What code a figure was measured with, so that a run which goes on measures anew what has changed since."""

from __future__ import annotations

import hashlib
from functools import cache, partial
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from scale_qa.systems import SystemSpec

# What decides the figures of any system; how results are summed up, printed and drawn does not.
_MEASURING = (
    *("run.py", "measure.py", "tokens.py", "lexical.py", "embeddings.py", "answers.py"),
    *("systems/__init__.py", "systems/base.py", "systems/spans.py", "systems/chunks.py", "systems/fusion.py"),
)
_TSIM = "scale_qa.systems.tsim"


def fingerprint(spec: SystemSpec) -> str:
    """SHA-256 of the code that measures a system.

    It covers the versions of scale-qa and tsim-core, the sources of the measuring and of the module that defines the
    system, and for TSIM itself all of tsim-core, its configuration included.

    Args:
        spec: The system.

    Returns:
        64 hex digits.
    """
    digest = hashlib.sha256()
    for package in ("scale-qa", "tsim-core"):
        digest.update(f"{package} {_version(package)}\n".encode())
    home = Path(str(resources.files("scale_qa")))
    files = [home / name for name in _MEASURING]
    origin = spec.origin or _module(spec)
    if origin == _TSIM:
        files += sorted(Path(str(resources.files("tsim_core"))).rglob("*.py"))
    source = origin if origin.endswith(".py") else getattr(find_spec(origin), "origin", None)
    if source is not None:
        files.append(Path(source))
    for path in files:
        digest.update(f"{path.name} {_hash(path, path.stat().st_mtime_ns)}\n".encode())
    return digest.hexdigest()


def _module(spec: SystemSpec) -> str:
    """Name of the module that defines what builds a system."""
    build = spec.build
    while isinstance(build, partial):
        build = build.func
    return str(build.__module__)


@cache
def _hash(path: Path, modified: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of a source tree"
