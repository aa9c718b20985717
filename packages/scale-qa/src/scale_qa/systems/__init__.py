"""Every memory that the benchmark can measure, by name.

``scale-qa systems`` lists them. Installed packages add more through the entry point group ``scale_qa.systems`` (name =
a function from `Resources` to a `MemorySystem`), and ``FILE.py:NAME`` or ``module:NAME`` names one directly.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from scale_qa.errors import SystemUnavailableError, UnknownSystemError
from scale_qa.systems.base import Footprint, MemorySystem, Resources, Unit

GROUP = "scale_qa.systems"
Build = Callable[[Resources], MemorySystem]


@dataclass(frozen=True, slots=True)
class SystemSpec:
    """A system that can be built.

    Attributes:
        name: What it is called on the command line.
        summary: One line.
        build: Makes an empty memory.
        extra: What to pip install when an import fails; None where nothing is needed.
        origin: The file or module that defines it, where ``build`` does not tell.
    """

    name: str
    summary: str
    build: Build
    extra: str | None = None
    origin: str | None = None

    def __call__(self, resources: Resources) -> MemorySystem:
        """Make an empty memory.

        Raises:
            SystemUnavailableError: If a package that it needs is not installed.
        """
        try:
            return self.build(resources)
        except ImportError as error:
            command = f"pip install {self.extra}" if self.extra else f"install {error.name}"
            raise SystemUnavailableError(
                f"system {self.name!r} needs a package that is not here ({error}); {command}"
            ) from error


def built_in() -> dict[str, SystemSpec]:
    """The systems that come with the benchmark."""
    specs: dict[str, SystemSpec] = {}
    for module in _MODULES:
        found: list[SystemSpec] = importlib.import_module(f"{__name__}.{module}").SPECS
        specs.update((spec.name, spec) for spec in found)
    return specs


def plug_ins() -> dict[str, SystemSpec]:
    """The systems that installed packages add; importing one is put off until it is built."""
    specs: dict[str, SystemSpec] = {}
    for entry in entry_points(group=GROUP):

        def build(resources: Resources, entry=entry) -> MemorySystem:  # type: ignore[no-untyped-def]
            return _checked(entry.name, entry.load())(resources)

        source = entry.dist.name if entry.dist else entry.module
        specs[entry.name] = SystemSpec(entry.name, f"plug-in from {source}", build, origin=entry.module)
    return specs


def all_systems() -> dict[str, SystemSpec]:
    """Built-in systems and plug-ins by name.

    Raises:
        UnknownSystemError: If a plug-in takes the name of a built-in system.
    """
    known, added = built_in(), plug_ins()
    taken = sorted(known.keys() & added.keys())
    if taken:
        raise UnknownSystemError(f"the plug-in system {taken[0]!r} takes a built-in name; rename its entry point")
    return {**known, **added}


def find_system(name: str, known: Mapping[str, SystemSpec] | None = None) -> SystemSpec:
    """The system of that name, ``FILE.py:NAME`` or ``module:NAME``.

    Raises:
        UnknownSystemError: If there is none; lists the names.
    """
    specs = all_systems() if known is None else known
    if name in specs:
        return specs[name]
    where, colon, attribute = name.rpartition(":")
    if colon:
        build = getattr(_module(name, where), attribute, None)
        if build is None:
            raise UnknownSystemError(f"{where} defines no {attribute!r}")
        return SystemSpec(name, f"{attribute} of {where}", _checked(name, build), origin=where)
    close = get_close_matches(name, specs, 1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    raise UnknownSystemError(f"no system {name!r}{hint}; there are {', '.join(specs)}; your own is FILE.py:NAME")


def _module(name: str, where: str) -> ModuleType:
    try:
        if not where.endswith(".py"):
            return importlib.import_module(where)
        spec = importlib.util.spec_from_file_location(f"scale_qa_user_{Path(where).stem}", where)
        if spec is None or spec.loader is None:
            raise ImportError(f"{where} cannot be loaded")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except (ImportError, FileNotFoundError) as error:
        raise UnknownSystemError(f"system {name!r}: {error}") from error
    return module


def _checked(name: str, build: object) -> Build:
    """``build`` as a function that verifies what it made."""
    if not callable(build):
        raise UnknownSystemError(f"system {name!r} is no function from Resources to a MemorySystem")

    def checked(resources: Resources) -> MemorySystem:
        memory = build(resources)
        if not isinstance(memory, MemorySystem):
            raise UnknownSystemError(
                f"system {name!r} made a {type(memory).__name__}; derive it from scale_qa.systems.MemorySystem"
            )
        return memory

    return checked


_MODULES = ("tsim", "windows", "chunks", "raptor", "memgpt", "hipporag", "whole", "peers")

__all__ = [
    "GROUP",
    "Footprint",
    "MemorySystem",
    "Resources",
    "SystemSpec",
    "Unit",
    "UnknownSystemError",
    "all_systems",
    "built_in",
    "find_system",
    "plug_ins",
]
