"""Errors of this package; all of them are `tsim_core.TSIMError`."""

from __future__ import annotations

from tsim_core import InputError


class ScopeError(InputError):
    """The scope of a memory cannot be resolved: an id is missing or of no use."""


class MessageError(InputError):
    """A message cannot be stored, or a stored turn cannot be read back as a message."""


class KeysError(InputError):
    """It is unclear which value of a chain is the user's input or the model's answer."""
