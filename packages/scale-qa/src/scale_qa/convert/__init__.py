"""Other people's data as packages: one batch a conversation, session marks stripped, evidence as turn positions.

A converter reads files and yields `Conversation`; `write` makes a package of them. What has no usable evidence is
counted by reason, printed and kept in the manifest, never dropped in silence. Read each set by path and mind its
licence: none of it belongs into a repository.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from scale_qa.convert.base import Conversation, write
from scale_qa.convert.beam import read_beam
from scale_qa.convert.goodai import read_goodai
from scale_qa.convert.locomo import read_locomo, read_realtalk
from scale_qa.convert.longmemeval import read_longmemeval

CONVERTERS: dict[str, Callable[[Path], Iterator[Conversation]]] = {
    "locomo": read_locomo,
    "longmemeval": read_longmemeval,
    "beam": read_beam,
    "realtalk": read_realtalk,
    "goodai": read_goodai,
}


def convert(source: str, paths: Sequence[Path]) -> Iterable[Conversation]:
    """Read files of one source, one after the other.

    Raises:
        ImportFormatError: If a file is not of that source's format.
    """
    return (conversation for path in paths for conversation in CONVERTERS[source](path))


__all__ = ["CONVERTERS", "Conversation", "convert", "write"]
