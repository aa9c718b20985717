"""The whole error tree. Every message says what went wrong and what to do about it.

TSIMError
+-- ConfigError            a setting is out of range or unknown            (also ValueError)
+-- InputError             a turn, thread name or query is not usable      (also ValueError)
|   +-- ReaderError        a transcript file is malformed; names the line
|   +-- DuplicateTurnError an id is taken by a turn with other content
+-- EmbedderError          an embedder failed or returned a bad array
+-- StoreError             the store cannot be opened, read or written
+-- StoreNotFoundError there is no store at that path
+-- StoreFormatError   the file is no TSIM store, or from a newer version
+-- StoreMismatchError it was written with another embedder or segmentation
+-- StoreClosedError   the memory was closed
+-- ReadOnlyError      a write on a memory opened with ``read_only=True``
"""

from __future__ import annotations


class TSIMError(Exception):
    """Base of every error that TSIM raises on purpose."""


class ConfigError(TSIMError, ValueError):
    """A configuration value is out of range, unknown or contradicts another."""


class InputError(TSIMError, ValueError):
    """A turn, a thread name, a query or a limit is not usable."""


class ReaderError(InputError):
    """A transcript file is malformed. The message names the file and the line."""


class DuplicateTurnError(InputError):
    """A turn id is already taken by a turn with other content."""


class EmbedderError(TSIMError):
    """An embedder failed or returned something that is not a finite (n, dimension) array."""


class StoreError(TSIMError):
    """The store cannot be opened, read or written."""


class StoreNotFoundError(StoreError):
    """There is no store at the given path."""


class StoreFormatError(StoreError):
    """The file is not a TSIM store, or a newer version of TSIM wrote it."""


class StoreMismatchError(StoreError):
    """The store was written with another embedder or another segmentation."""


class StoreClosedError(StoreError):
    """The memory was closed."""


class ReadOnlyError(StoreError):
    """A write was tried on a memory that was opened with ``read_only=True``."""
