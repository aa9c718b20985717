"""Transcripts from files: every common dump of a chat becomes a list of turns.

Formats: JSON lines and JSON lists of messages (OpenAI, ShareGPT and similar), a ChatGPT export, LangChain and
LlamaIndex message dumps, LoCoMo's conversations, GoodAI's logs, and plain text with a speaker before each turn
(``User: ...``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tsim_core.errors import ReaderError
from tsim_core.evaluation_sets import goodai_turn, is_goodai_event, is_locomo, locomo_turns
from tsim_core.types import Turn

FORMATS = ("auto", "jsonl", "json", "chatgpt", "text")

ROLES = {
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "gpt": "assistant",
    "chatbot": "assistant",
    "robot": "assistant",
    "function": "tool",
    "humanmessage": "user",
    "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "systemmessage": "system",
    "toolmessage": "tool",
}
ROLE_FIELDS = ("role", "from", "author", "speaker", "sender", "type")  # "type" may say "text": it comes last
NAME_FIELDS = ("name", "sender_name", "speaker")
TEXT_FIELDS = ("text", "content", "message", "value", "blocks")
ID_FIELDS = ("id", "message_id", "dia_id", "uuid")
TIME_FIELDS = ("timestamp", "created_at", "create_time", "time", "date", "datetime")
LIST_FIELDS = ("messages", "turns", "conversation", "conversations", "conversation_list", "history", "chat")
SPEAKER = re.compile(r"^\s*(?:\[(?P<time>[^\]]+)\]\s*)?(?P<who>[^\W\d_][\w .'-]{0,30}?)\s*:\s?(?P<text>.*)$")


def read_turns(path: str | Path, format: str = "auto") -> list[Turn]:
    """Read a transcript.

    Args:
        path: The file, UTF-8.
        format: One of `FORMATS`; "auto" looks at the content.

    Returns:
        Its turns in order. A file without any turn gives an empty list.

    Raises:
        ReaderError: If the file is missing, is no UTF-8 or is malformed; the message names the line.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ReaderError(f"{path} does not exist") from None
    except OSError as error:
        raise ReaderError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ReaderError(f"{path} is not UTF-8 (byte {error.start}); convert it first") from error
    return parse_turns(text, format, source=str(path))


def parse_turns(text: str, format: str = "auto", source: str = "input") -> list[Turn]:
    """Read a transcript from a string; see `read_turns`.

    Args:
        text: The transcript.
        format: One of `FORMATS`.
        source: What error messages call it.
    """
    if format not in FORMATS:
        raise ReaderError(f"unknown format {format!r}; known: {', '.join(FORMATS)}")
    if not text.strip():
        return []
    if format == "text":
        return _plain(text, source)
    if format == "jsonl":
        return _lines(text, source)
    if format in ("json", "chatgpt"):
        return _document(_load(text, source), source)
    first = text.lstrip().splitlines()[0]
    head = first[0]
    if head not in "[{" or SPEAKER.match(first):
        return _plain(text, source)
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        if head == "[" and not first.rstrip().endswith("]"):
            raise ReaderError(f"{source}, line {error.lineno}: {error.msg}") from error
        return _lines(text, source)
    if isinstance(data, dict) and "\n" not in text.strip():
        if is_goodai_event(data):
            return _lines(text, source)
        source += ", line 1"
    return _document(data, source)


def _load(text: str, source: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ReaderError(f"{source}, line {error.lineno}: {error.msg}") from error


def _lines(text: str, source: str) -> list[Turn]:
    turns = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"{source}, line {number}"
            try:
                data = json.loads(line)
            except json.JSONDecodeError as error:
                raise ReaderError(f"{where}: {error.msg}") from error
            if not is_goodai_event(data):
                turns.append(message_turn(data, where))
            elif (turn := goodai_turn(data, where)) is not None:
                turns.append(turn)
    return turns


def _document(data: Any, source: str) -> list[Turn]:
    if isinstance(data, dict):
        if "mapping" in data:
            return _chatgpt(data, source)
        if isinstance(data.get("store"), dict):  # a LlamaIndex chat store
            return [turn for key, value in data["store"].items() for turn in _document(value, f"{source}, {key}")]
        conversation = data.get("conversation", data)
        if isinstance(conversation, dict) and is_locomo(conversation):
            return locomo_turns(conversation, source)
        for name in LIST_FIELDS:
            if isinstance(data.get(name), list):
                return _document(data[name], source)
        if any(name in data for name in (*ROLE_FIELDS, *TEXT_FIELDS)) or _is_message(data):
            return [message_turn(data, source)]  # or what is missing in it
        raise ReaderError(f"{source} holds no list of messages under any of: {', '.join(LIST_FIELDS)}")
    if not isinstance(data, list):
        raise ReaderError(f"{source} is a JSON {type(data).__name__}; expected a list of messages")
    turns: list[Turn] = []
    for number, item in enumerate(data, start=1):
        where = f"{source}, item {number}"
        if isinstance(item, dict) and not _is_message(item):
            turns += _document(item, where)  # a list of conversations
        elif isinstance(item, list) and not _is_pair(item):
            turns += _document(item, where)
        else:
            turns.append(message_turn(item, where))
    return turns


def _is_message(item: Mapping[str, Any]) -> bool:
    if "lc" in item or "data" in item:
        return True
    has_text = any(name in item for name in TEXT_FIELDS) or "tool_calls" in item
    return has_text and any(name in item for name in ROLE_FIELDS)


def _is_pair(item: list[Any]) -> bool:
    return len(item) == 2 and all(isinstance(part, str) for part in item)


def message_turn(item: Any, where: str) -> Turn:
    """One message of any known shape as a turn.

    Args:
        item: A mapping, or a pair of role and text.
        where: What an error message calls it.

    Raises:
        ReaderError: If role or text are missing or of the wrong type.
    """
    if isinstance(item, list | tuple) and _is_pair(list(item)):
        return Turn(standard_role(item[0]), item[1])
    if not isinstance(item, Mapping):
        raise ReaderError(f"{where}: expected a message object, found {type(item).__name__}")
    data: dict[str, Any] = dict(item)
    if "lc" in data:  # LangChain's serialised form
        data = {"role": (data.get("id") or ["?"])[-1], **_mapping(data.get("kwargs"), where)}
        data.pop("type", None)
    elif isinstance(data.get("data"), Mapping):  # LangChain's messages_to_dict
        data = {"role": data.get("type"), **data["data"]}
        data.pop("type", None)
    role_field = _first(data, ROLE_FIELDS)
    text_field = _first(data, TEXT_FIELDS)
    if role_field is None:
        raise ReaderError(f"{where}: the message has no role; {_expected(ROLE_FIELDS, data)}")
    if text_field is None and "tool_calls" not in data:
        raise ReaderError(f"{where}: the message has no text; {_expected(TEXT_FIELDS, data)}")
    role = data.pop(role_field)
    if isinstance(role, Mapping):  # ChatGPT's author
        role = role.get("role")
    if not isinstance(role, str) or not role:
        raise ReaderError(f"{where}: the role is {role!r}; expected text")
    text = content_text(data.pop(text_field) if text_field else "", where)
    name_field = _first(data, NAME_FIELDS)
    name = data.get(name_field) if name_field else None
    known = standard_role(role)
    if known not in _KNOWN and isinstance(name, str) and name.lower() in {*ROLES, *_KNOWN}:
        known = standard_role(name)  # a sender id beside a telling name
    id_field, time_field = _first(data, ID_FIELDS), _first(data, TIME_FIELDS)
    id_ = data.pop(id_field) if id_field else None
    time = data.pop(time_field) if time_field else None
    nested = data.pop("metadata", None)
    metadata = {k: v for k, v in data.items() if v not in (None, "", [], {})}
    if isinstance(nested, Mapping):
        metadata |= nested
    if isinstance(name, str) and name:
        metadata.setdefault("name", name)
    return Turn(known, text, None if id_ is None else str(id_), parse_time(time, where), metadata or None)


_KNOWN = frozenset({"user", "assistant", "system", "tool"})


def standard_role(role: str) -> str:
    """The standard name of a role, whatever a dump calls it; other roles are kept verbatim."""
    lower = role.lower()
    return ROLES.get(lower, lower if lower in _KNOWN else role)


def content_text(content: Any, where: str) -> str:
    """The text of a message's content: a string, a list of parts, or ChatGPT's {"parts": [...]}; None is blank.

    Raises:
        ReaderError: If it is none of these.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        if "parts" in content:
            content = content["parts"]
        elif isinstance(content.get("text"), str):
            return str(content["text"])
        else:
            return ""  # an image, audio or a file: kept out of the text
    if isinstance(content, list):
        parts = (content_text(part, where) for part in content)
        return "\n".join(part for part in parts if part)
    raise ReaderError(f"{where}: the text is {type(content).__name__}; expected text or a list of parts")


def parse_time(value: Any, where: str) -> datetime | None:
    """A time from ISO 8601 text or seconds since 1970; without a zone it is UTC.

    Raises:
        ReaderError: If it is neither.
    """
    if value is None or value == "":
        return None
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if value > 1e11 else value  # milliseconds
            return datetime.fromtimestamp(seconds, UTC)
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
            return time if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise ReaderError(f"{where}: the time {value!r} is neither ISO 8601 nor seconds since 1970")


def _chatgpt(data: Mapping[str, Any], source: str) -> list[Turn]:
    """The branch of a ChatGPT conversation that is shown: from its current node back to the root."""
    mapping = _mapping(data["mapping"], source)
    node: str | None = data.get("current_node")
    if node is None:
        parents = {n.get("parent") for n in mapping.values() if isinstance(n, Mapping)}
        node = next((key for key in reversed(list(mapping)) if key not in parents), None)
    turns: list[Turn] = []
    seen: set[str] = set()
    while node is not None:
        if node in seen or node not in mapping:
            raise ReaderError(f"{source}: the conversation tree is broken at node {node!r}")
        seen.add(node)
        message = mapping[node].get("message")
        if message is not None:
            turn = message_turn(message, f"{source}, node {node}")
            if turn.text.strip():  # hidden roots are blank
                turns.append(turn)
        node = mapping[node].get("parent")
    return turns[::-1]


def _plain(text: str, source: str) -> list[Turn]:
    """Lines ``Speaker: text``; a line without a speaker goes on with the turn before it."""
    turns: list[tuple[str, str | None, list[str]]] = []
    speakers = _speakers(text)
    for number, line in enumerate(text.splitlines(), start=1):
        match = SPEAKER.match(line)
        if match and match["who"].lower() in speakers:
            turns.append((match["who"], match["time"], [match["text"]]))
        elif turns:
            turns[-1][2].append(line)
        elif line.strip():
            raise ReaderError(
                f"{source}, line {number}: expected 'Speaker: text', such as 'User: hello'; found {line[:40]!r}"
            )
    found = []
    for who, time, lines in turns:
        found.append(Turn(standard_role(who), "\n".join(lines).strip(), None, parse_time(time, source)))
    return found


def _speakers(text: str) -> set[str]:
    """Who speaks: the known roles, or else every name that opens the first line or more than one."""
    counts: dict[str, int] = {}
    for line in text.splitlines():
        if match := SPEAKER.match(line):
            who = match["who"].lower()
            counts[who] = counts.get(who, 0) + 1
    known = {who for who in counts if who in ROLES or who in _KNOWN}
    if known:
        return known
    first = next(iter(counts), None)
    return {who for who, n in counts.items() if n > 1 or who == first}


def _first(data: Mapping[str, Any], names: Iterable[str]) -> str | None:
    return next((name for name in names if data.get(name) is not None), None)


def _expected(names: Iterable[str], data: Mapping[str, Any]) -> str:
    return f"expected one of: {', '.join(names)}; found: {', '.join(map(str, data))}"


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ReaderError(f"{where}: expected an object, found {type(value).__name__}")
    return value
