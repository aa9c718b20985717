"""The reference pages: every public name of every package, from its docstring. docs/hooks.py adds them to the site."""

from __future__ import annotations

import importlib

MODULES = {
    "tsim_core": ("core.md", "tsim_core"),
    "langchain_tsim": ("langchain.md", "langchain_tsim"),
    "langgraph_tsim": ("langgraph.md", "langgraph_tsim"),
    "llama_index.node_parser.tsim": ("llama-index.md", "llama_index: node parser, retriever, memory"),
    "llama_index.retrievers.tsim": ("llama-index.md", ""),
    "llama_index.memory.tsim": ("llama-index.md", ""),
    "llama_index.utils.tsim": ("llama-index.md", ""),
}
"""Public modules: the page of each, and its title."""

CONFIG = (
    "tsim_core.calibration.CalibratedSegmentation",
    "tsim_core.linking.Linking",
    "tsim_core.fusion.FusedRanking",
    "tsim_core.assembly.Assembly",
    "tsim_core.segmentation.PublishedSegmentation",
    "tsim_core.views.PublishedViews",
    "tsim_core.ranking.PublishedRanking",
)
"""The parts of a configuration, on a page of their own."""


FIRST = ("EpisodicMemory", "Thread", "Turn", "Recall", "Episode", "Segment", "Reconciled", "TSIMConfig")
"""What readers look for first."""


def place(value: object) -> tuple[bool, int]:
    """Where a name comes on its page: what readers look for first, the rest, the errors."""
    name = getattr(value, "__name__", "")
    error = isinstance(value, type) and issubclass(value, Exception)
    return error, FIRST.index(name) if name in FIRST else len(FIRST)


def pages() -> dict[str, str]:
    """The pages by their path within the docs."""
    found: dict[str, str] = {}
    for name, (page, title) in MODULES.items():
        module = importlib.import_module(name)
        path = f"reference/{page}"
        parts = [found[path]] if path in found else [f"# {title}"]
        names = sorted((n for n in module.__all__ if n != "__version__"), key=lambda n: place(getattr(module, n)))
        parts.append(f"## `{name}`" if path in found or page == "llama-index.md" else "")
        parts += [f"::: {name}.{n}" for n in names]
        found[path] = "\n\n".join(part for part in parts if part) + "\n"
    names = ("MemorySystem", "Unit", "Resources", "Footprint")
    systems = [f"::: scale_qa.systems.base.{name}" for name in names]
    found["reference/scale-qa.md"] = "\n\n".join(["# SCALE-QA: a memory to measure", *systems]) + "\n"
    settings = [f"::: {name}" for name in CONFIG]
    found["reference/settings.md"] = "\n\n".join(["# Settings", SETTINGS, *settings]) + "\n"
    return found


SETTINGS = (
    "The parts of a [`TSIMConfig`][tsim_core.TSIMConfig]. Single values are changed with "
    "`TSIMConfig.default().replace(k=3)`; what is stored depends on the segmentation, the linking, the views and the "
    "token estimator, so a store goes on with those it was written with."
)
