"""Hooks of MkDocs: pages that are made while the site is built, from docstrings and from results files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import reference
from mkdocs.structure.files import File

RESULTS = Path(__file__).resolve().parent / "results"
FILES = sorted(RESULTS.glob("*.json"))

BUDGET_PICTURE = RESULTS.parent / "pictures" / "budget-light.svg"
BUDGET = """## Measured

![Recall by token budget, a line for each memory.](pictures/budget-light.svg#only-light)
![The same picture for dark pages.](pictures/budget-dark.svg#only-dark)

*The share of questions whose every piece of evidence is handed over, by the tokens that may be.
More: [Results](results.md).*
"""

NONE_YET = """# Results

This checkout holds no results files. `scale-qa run` writes them, and this page is made from what lies in
`docs/results`; see [Benchmark your own memory](tutorials/benchmark.md).
"""


def on_files(files: Any, config: Any) -> Any:
    """Add the pages."""
    for path, content in reference.pages().items():
        files.append(File.generated(config, path, content=content))
    if not FILES:
        files.append(File.generated(config, "results.md", content=NONE_YET))
        return files
    from scale_qa.report import write_report
    from scale_qa.results import read_results

    with tempfile.TemporaryDirectory() as folder:
        page, plots = Path(folder) / "results.md", Path(folder) / "plots"
        write_report([read_results(file) for file in FILES], page, plots)
        files.append(File.generated(config, "results.md", content=page.read_text(encoding="utf-8")))
        for plot in plots.glob("*.svg"):
            files.append(File.generated(config, f"plots/{plot.name}", content=plot.read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    """Put the picture of the results where a page wants it, if there are results."""
    return markdown.replace("<!-- recall by budget -->", BUDGET if BUDGET_PICTURE.exists() else "")
