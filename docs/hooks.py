"""Hooks of MkDocs: reference pages made from docstrings, and a place in the navigation for every report of results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import reference
from mkdocs.structure.files import File

RESULTS = Path(__file__).resolve().parent / "results"


def reports() -> dict[str, str]:
    """The reports in ``docs/results``: file name and what it measures, by its first heading of a package."""
    found = {}
    for path in sorted(RESULTS.glob("*.md")):
        if path.name != "index.md":
            heading = re.search(r"^## (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            found[path.name] = f"{path.stem}: {heading[1]}" if heading else path.stem
    return found


def on_config(config: Any) -> Any:
    """Put the reports behind the page that says how to read them."""
    (section,) = (entry["Results"] for entry in config.nav if "Results" in entry)
    section += [{title: f"results/{name}"} for name, title in reports().items()]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the reference pages."""
    for path, content in reference.pages().items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    """List the reports where a page wants them."""
    return markdown.replace("<!-- reports -->", "\n".join(f"- [{title}]({name})" for name, title in reports().items()))
