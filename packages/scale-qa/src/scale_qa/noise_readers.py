"""Noise from elsewhere: readers of public chat dumps, by path. None of that data is part of this package.

Each reader yields dialogues that begin with the user and alternate. What cannot be brought into that form (blank or
doubled turns, an unknown speaker) is cut off before the first odd turn, and passed over when less than one exchange
is left. A line that is not of the format is an error with file and line.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from scale_qa.errors import ImportFormatError
from scale_qa.records import Message, NoiseDialogue, read_noise

Row = tuple[str, Any]
Reader = Callable[[Iterable[Row]], Iterator[tuple[str, list[tuple[str, str]]]]]

_ROLES = {
    "user": "user",
    "human": "user",
    "prompter": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "bot": "assistant",
    "chatgpt": "assistant",
    "model": "assistant",
}


def read_dump(path: Path, format: str = "auto") -> Iterator[NoiseDialogue]:
    """Read a noise file.

    Args:
        path: JSON lines or one JSON list, also gzipped.
        format: One of `FORMATS`, or "auto" to tell by the first entry.

    Raises:
        ImportFormatError: If the format is unknown or cannot be told, or an entry is not of it.
        RecordError: If it is our own format and a line is malformed.
    """
    if format == "auto":
        format = _detect(path)
    if format == "jsonl":
        yield from read_noise(path)
        return
    if format not in _READERS:
        raise ImportFormatError(f"unknown noise format {format!r}; known: auto, {', '.join(FORMATS)}")
    reader, licence = _READERS[format]
    watched = _Watched(path)
    try:
        for id, turns in reader(watched):
            messages = alternating(turns)
            if len(messages) >= 2:
                yield NoiseDialogue(id, format, licence, messages)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ImportFormatError(f"{watched.where}: not in the format of {format}: {error!r}") from error


def parse_source(source: str) -> tuple[str, Path]:
    """Split ``format:path``; the format is "auto" where none is given."""
    format, colon, rest = source.partition(":")
    if colon and format in FORMATS:
        return format, Path(rest)
    return "auto", Path(source)


def alternating(turns: Iterable[tuple[str, str]]) -> tuple[Message, ...]:
    """The longest beginning that alternates user, assistant; leading system turns are passed over."""
    messages: list[Message] = []
    for speaker, text in turns:
        role = _ROLES.get(speaker.lower())
        if not messages and role != "user":
            if speaker.lower() == "system":
                continue
            break
        if role is None or not text.strip() or (messages and role == messages[-1].role):
            break
        messages.append(Message(role, text.strip().encode("utf-8", "replace").decode("utf-8")))
    return tuple(messages)


def _oasst(rows: Iterable[Row]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """OpenAssistant trees, nested or as flat messages: of each tree the path of best-ranked replies."""
    flat: dict[str, dict[str, Any]] = {}
    for _, row in rows:
        if "prompt" in row:
            yield row["message_tree_id"], _best_path(row["prompt"], lambda node: node["replies"])
        else:
            flat[row["message_id"]] = row
    children: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in flat.values():
        if row["parent_id"] is not None:
            children[row["parent_id"]].append(row)
    for row in flat.values():
        if row["parent_id"] is None:
            yield row["message_tree_id"], _best_path(row, lambda node: children[node["message_id"]])


def _best_path(node: Mapping[str, Any], replies: Callable[[Any], list[Any]]) -> list[tuple[str, str]]:
    path = []
    while True:
        path.append((node["role"], node["text"]))
        below = [reply for reply in replies(node) if not reply.get("deleted")]
        if not below:
            return path
        node = min(below, key=lambda r: (r["rank"] if r.get("rank") is not None else 99, r["message_id"]))


def _mtbench101(rows: Iterable[Row]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for _, row in rows:
        yield f"{row['task']}-{row['id']}", _pairs(row["history"], "user", "bot")


def _mt_eval(rows: Iterable[Row]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for number, (_, row) in enumerate(rows):
        conversation = row if isinstance(row, list) else row["conversation"]
        yield str(number), _pairs(conversation, "user", "sys")


def _ultrachat(rows: Iterable[Row]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for _, row in rows:
        if "messages" in row:
            yield row["prompt_id"], [(turn["role"], turn["content"]) for turn in row["messages"]]
        else:
            roles = ("user", "assistant")
            yield str(row["id"]), [(roles[i % 2], text) for i, text in enumerate(row["data"])]


def _wildchat(rows: Iterable[Row]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for _, row in rows:
        turns = [(turn["role"], turn["content"]) for turn in row["conversation"]]
        if not row.get("toxic"):
            yield row["conversation_hash"] if "conversation_hash" in row else row["conversation_id"], turns


def _sharegpt(rows: Iterable[Row]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for _, row in rows:
        yield str(row["id"]), [(turn["from"], turn["value"]) for turn in row["conversations"]]


_READERS: dict[str, tuple[Reader, str]] = {
    "oasst": (_oasst, "Apache-2.0"),
    "mtbench101": (_mtbench101, "Apache-2.0"),
    "mt-eval": (_mt_eval, "MIT"),
    "ultrachat": (_ultrachat, "MIT"),
    "wildchat": (_wildchat, "ODC-BY-1.0"),
    "sharegpt": (_sharegpt, "unstated"),
}
FORMATS = ("jsonl", *_READERS)


def _pairs(exchanges: Iterable[Mapping[str, Any]], ask: str, reply: str) -> list[tuple[str, str]]:
    return [turn for pair in exchanges for turn in (("user", pair[ask]), ("assistant", pair[reply]))]


def _detect(path: Path) -> str:
    first = next(iter(_entries(path)), None)
    if first is None:
        raise ImportFormatError(f"{path}: no dialogue in it")
    where, entry = first
    keys = set(entry) if isinstance(entry, dict) else {"conversation"} if isinstance(entry, list) else set()
    for format, needed in (
        ("jsonl", {"source", "licence", "turns"}),
        ("oasst", {"message_tree_id"}),
        ("mtbench101", {"task", "history"}),
        ("wildchat", {"conversation", "conversation_hash"}),
        ("wildchat", {"conversation", "conversation_id"}),
        ("mt-eval", {"conversation"}),
        ("ultrachat", {"messages", "prompt_id"}),
        ("ultrachat", {"id", "data"}),
        ("sharegpt", {"id", "conversations"}),
    ):
        if needed <= keys:
            return format
    raise ImportFormatError(
        f"{where}: cannot tell the format; name it, as in --noise oasst:{path} (known: {', '.join(FORMATS)})"
    )


class _Watched:
    """The entries of a file; remembers which one was handed out last."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.where = str(path)

    def __iter__(self) -> Iterator[Row]:
        for where, entry in _entries(self._path):
            self.where = where
            yield where, entry


def _entries(path: Path) -> Iterator[Row]:
    """Yield ("file:line", value) of JSON lines, or ("file[index]", value) of one JSON list."""
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    value = json.loads(line)
                except json.JSONDecodeError as error:
                    if number > 1:
                        raise ImportFormatError(f"{path}:{number}: not JSON: {error}") from error
                    value = json.loads(line + lines.read())  # a list over many lines
                if number == 1 and isinstance(value, list) and not _is_exchange(value[:1]):
                    yield from ((f"{path}[{i}]", entry) for i, entry in enumerate(value))
                    return
                yield f"{path}:{number}", value
    except (FileNotFoundError, IsADirectoryError) as error:
        raise ImportFormatError(f"{path}: no such file") from error
    except (UnicodeDecodeError, json.JSONDecodeError, gzip.BadGzipFile, EOFError) as error:
        raise ImportFormatError(f"{path}: not readable as JSON: {error}") from error


def _is_exchange(value: list[Any]) -> bool:
    """Whether a list is one dialogue of MT-Eval, which puts a list on each line."""
    return bool(value) and isinstance(value[0], dict) and "sys" in value[0]
