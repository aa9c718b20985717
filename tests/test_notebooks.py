"""The notebooks are the tutorials, and run."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent


def load(name: str) -> ModuleType:
    """A script of the docs folder as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


notebooks = load("notebooks")
blocks = load("blocks")


def printed(cell: nbformat.NotebookNode) -> str:
    """What a cell printed on stdout."""
    return "".join(output.text for output in cell.outputs if output.get("name") == "stdout")


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", notebooks.PAGES)
def test_a_notebook_is_its_tutorial_and_prints_what_it_shows(name: str) -> None:
    stored = nbformat.read(notebooks.FOLDER / f"{name}.ipynb", as_version=4)
    made = notebooks.notebook(ROOT / "docs" / "tutorials" / notebooks.PAGES[name])
    sources = [(cell.cell_type, cell.source) for cell in made.cells]
    assert [(c.cell_type, c.source) for c in stored.cells] == sources, "run docs/notebooks.py"
    done = notebooks.run(made)
    codes = [(a, b) for a, b in zip(stored.cells, done.cells, strict=True) if a.cell_type == "code"]
    assert len(codes) >= 3
    for shown, ran in codes:
        assert blocks.same(printed(shown), printed(ran)), f"{shown.source}\nprints\n{printed(ran)}"
