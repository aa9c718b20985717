"""Makes the notebooks of ``examples/notebooks`` from the tutorials, so that both say the same.

python docs/notebooks.py            # write them, with what they print
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "examples" / "notebooks"
PAGES = {
    "langchain": "langchain-agent.md",
    "langgraph": "langgraph-support.md",
    "llamaindex": "llamaindex.md",
}
"""Notebooks, and the tutorial of each."""

CODE = re.compile(r"```python\n(.*?)```(?:\s*```text\n.*?```)?", re.DOTALL)
LINK = re.compile(r"!?\[([^\]]+)\]\([^)\s]+\)")


def notebook(page: Path) -> nbformat.NotebookNode:
    """A tutorial as a notebook that did not run yet: text, code, and no links to other pages."""
    text = page.read_text(encoding="utf-8").split("\n## Next")[0]
    cells = []
    for i, part in enumerate(CODE.split(text)):
        if not part.strip():
            continue
        cell = new_code_cell(part.strip()) if i % 2 else new_markdown_cell(LINK.sub(r"\1", part).strip())
        cell["id"] = f"cell-{len(cells)}"
        cells.append(cell)
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return new_notebook(cells=cells, metadata=kernel)


def run(made: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Run a notebook in an empty directory.

    Raises:
        CellExecutionError: If a cell fails.
    """
    with tempfile.TemporaryDirectory() as directory:
        client = NotebookClient(
            made, timeout=120, kernel_name="python3", record_timing=False, resources={"metadata": {"path": directory}}
        )
        done: nbformat.NotebookNode = client.execute()
    done.metadata.pop("language_info", None)  # it names the Python that ran it
    for cell in done.cells:
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
    return done


def main() -> None:
    """Write all notebooks."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        nbformat.write(run(notebook(ROOT / "docs" / "tutorials" / page)), FOLDER / f"{name}.ipynb")
        print(f"examples/notebooks/{name}.ipynb")


if __name__ == "__main__":
    main()
