"""Errors of this package. Those of the core and `langchain_tsim.errors` (ids, messages) pass through unchanged."""

from __future__ import annotations

from tsim_core import InputError


class StateError(InputError):
    """The graph's state has no usable messages."""


class WiringError(InputError):
    """Memory nodes cannot be put into this graph."""


class MemoryWarning(UserWarning):
    """A memory node with ``on_error="warn"`` failed; the run went on without it."""
