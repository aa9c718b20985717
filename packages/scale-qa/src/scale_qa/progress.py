"""The progress bar of a run."""

from __future__ import annotations

from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class RunProgress:
    """Questions done of all questions, with the time left; what is embedded counts up beside it.

    Args:
        total: Questions of all systems together.
    """

    def __init__(self, total: int) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task("run", total=total)
        self._step = ""
        self._embedded = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def start(self, system: str, batch: str, step: str) -> None:
        """Name the step that begins."""
        self._step = f"{system} · batch {batch} · {step}"
        self._embedded = 0
        self._show()

    def advance(self, questions: int) -> None:
        """Count questions that are done."""
        self._bar.advance(self._task, questions)

    def note(self, text: str) -> None:
        """Print a line above the bar."""
        self._bar.console.print(text, markup=False, highlight=False)

    def embedded(self, texts: int) -> None:
        """Count texts that were embedded."""
        self._embedded += texts
        self._show()

    def _show(self) -> None:
        embedding = f" · {self._embedded:,} texts embedded" if self._embedded else ""
        self._bar.update(self._task, description=self._step + embedding)
