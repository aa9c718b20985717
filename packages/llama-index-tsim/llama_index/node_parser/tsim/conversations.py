"""Documents as conversations: turns that know where in the text they stand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any
from uuid import UUID

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.schema import BaseNode, Document, MetadataMode
from llama_index.utils.tsim.messages import message_to_turn, speaker
from tsim_core import InputError, ReaderError, Turn
from tsim_core.readers import LIST_FIELDS, ROLES, SPEAKER, parse_time, parse_turns

TurnSplitter = Callable[[str], Sequence[tuple[str, str]]]
"""Splits a transcript into (role, text) pairs; each text stands in the transcript, in this order."""

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Utterance:
    """A turn and where it stands.

    Attributes:
        turn: The turn.
        start: First character of it in the source text, its speaker included.
        end: One more than its last.
        text_start: First character of what it says, where the conversation is verbatim.
        source: The document it came from, where each turn has its own.
    """

    turn: Turn
    start: int
    end: int
    text_start: int
    source: BaseNode | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """The turns of one session.

    Attributes:
        source: The document they came from; the first one where each turn has its own.
        text: What the spans of the utterances count in.
        verbatim: Whether `text` is a transcript that nodes take their text from; otherwise turns are written as lines.
        utterances: The turns, oldest first.
        session: Name of the session, where one is known.
        metadata: What the user's documents say about all of its turns.
    """

    source: BaseNode
    text: str
    verbatim: bool
    utterances: tuple[Utterance, ...]
    session: str | None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def identity(self) -> str:
        """What tells the conversation apart, the same each time it is read.

        A session name or a document id that somebody chose identifies it; an id that LlamaIndex drew at random says
        nothing, so then the content does.
        """
        chosen = "" if _random(self.source.node_id) else self.source.node_id
        content = "" if self.session or chosen else self.text + json.dumps(self.metadata, default=str, sort_keys=True)
        return digest(self.session or "", chosen, content)


def digest(*parts: str) -> str:
    """A digest of some texts as a UUID, the same on every machine."""
    data = json.dumps(parts).encode()  # ASCII: lone surrogates are escaped
    return str(UUID(bytes=blake2b(data, digest_size=16).digest(), version=5))


def _random(id_: str) -> bool:
    try:
        return UUID(id_).version == 4
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Reading:
    """How documents are read: the settings of the parser that matter here."""

    format: str
    turn_pattern: str | None
    turn_splitter: TurnSplitter | None
    role_key: str
    session_key: str
    timestamp_key: str

    def is_turn(self, document: BaseNode) -> bool:
        """Whether a document is a single turn."""
        return bool(document.metadata.get(self.role_key))

    def session(self, document: BaseNode) -> str | None:
        """The session that a document names."""
        session = document.metadata.get(self.session_key)
        return None if session is None else str(session)

    def document(self, document: BaseNode) -> Conversation | None:
        """A document that holds a whole conversation; None for a blank one.

        Raises:
            InputError: If it is malformed; the message names the position.
        """
        text = document.get_content(metadata_mode=MetadataMode.NONE)
        if not text.strip():
            return None
        where = f"document {document.node_id!r}"
        verbatim = True
        if self.turn_splitter is not None:
            utterances = _split(text, self.turn_splitter, where)
        elif self.turn_pattern is not None:
            utterances = _by_pattern(text, re.compile(self.turn_pattern, re.MULTILINE), where)
        elif self._is_json(text):
            verbatim = False
            turns = parse_turns(text, self.format, where)
            spans = _json_spans(text, len(turns))
            utterances = [Utterance(turn, *span, span[0]) for turn, span in zip(turns, spans, strict=True)]
        else:
            utterances = _plain(text, where)
        _check(utterances, where)
        return Conversation(
            document, text, verbatim, tuple(utterances), self.session(document), dict(document.metadata)
        )

    def _is_json(self, text: str) -> bool:
        if self.format != "auto":
            return self.format != "text"
        first = text.lstrip().splitlines()[0]
        return first[0] in "[{" and SPEAKER.match(first) is None

    def turn(self, document: BaseNode) -> Utterance:
        """A document that is one turn, not placed yet.

        Raises:
            InputError: If its timestamp is malformed or its text holds a lone surrogate.
        """
        where = f"document {document.node_id!r}"
        role = str(document.metadata[self.role_key])
        name = document.metadata.get("name")
        turn = Turn(
            ROLES.get(role.lower(), role),
            document.get_content(metadata_mode=MetadataMode.NONE),
            document.node_id,
            parse_time(document.metadata.get(self.timestamp_key), where),
            {"name": name} if isinstance(name, str) and name else None,
        )
        utterance = Utterance(turn, 0, 0, 0, document)
        _check([utterance], where)
        return utterance

    def turns(self, session: str | None, utterances: Sequence[Utterance]) -> Conversation:
        """The turns of a session that came in documents of their own, in order of time where all have one."""
        if all(u.turn.timestamp is not None for u in utterances):
            utterances = sorted(utterances, key=lambda u: u.turn.timestamp.timestamp() if u.turn.timestamp else 0.0)
        sources = [u.source for u in utterances if u.source is not None]
        own = {self.role_key, self.timestamp_key}
        shared = {
            key: value
            for key, value in sources[0].metadata.items()
            if key not in own and all(s.metadata.get(key) == value for s in sources)
        }
        text, placed = written(utterances)
        return Conversation(sources[0], text, True, placed, session, shared)


def messages_conversation(messages: Sequence[ChatMessage], session: str | None) -> Conversation | None:
    """LlamaIndex messages as a conversation whose document is their transcript; None when nothing was said."""
    turns = [message_to_turn(message) for message in messages]
    utterances = [Utterance(turn, 0, 0, 0) for turn in turns]
    _check(utterances, "the message list")
    text, placed = written(utterances)
    if not text:
        return None
    id_ = digest("messages", session or "", text if session is None else "")
    metadata = {} if session is None else {"session_id": session}
    return Conversation(Document(text=text, id_=id_, metadata=metadata), text, True, placed, session, metadata)


def written(utterances: Sequence[Utterance]) -> tuple[str, tuple[Utterance, ...]]:
    """Turns as lines of a transcript, with their places in it. A blank turn has no line."""
    pieces: list[str] = []
    placed: list[Utterance] = []
    at = 0
    for u in utterances:
        if not u.turn.text.strip():
            placed.append(Utterance(u.turn, at, at, at, u.source))
            continue
        if pieces:
            pieces.append("\n")
            at += 1
        prefix = f"{speaker(u.turn)}: "
        end = at + len(prefix) + len(u.turn.text)
        placed.append(Utterance(u.turn, at, end, at + len(prefix), u.source))
        pieces += [prefix, u.turn.text]
        at = end
    return "".join(pieces), tuple(placed)


def _check(utterances: Sequence[Utterance], where: str) -> None:
    for number, u in enumerate(utterances, start=1):
        for name, text in (("text", u.turn.text), ("role", u.turn.role)):
            if found := _SURROGATE.search(text):
                raise InputError(
                    f"{where}: the {name} of turn {number} holds a lone surrogate at character {found.start()}; "
                    "mend it with text.encode('utf-8', 'replace').decode()"
                )


def _slice(text: str, start: int, text_start: int, stop: int, role: str, time: Any, where: str) -> Utterance:
    """The turn between two positions, without the blank space around it."""
    said = text[text_start:stop]
    text_start += len(said) - len(said.lstrip())
    said = said.strip()
    end = text_start + len(said) if said else start + len(text[start:stop].rstrip())
    return Utterance(Turn(_role(role), said, None, parse_time(time, where)), start, end, min(text_start, end))


def _plain(text: str, where: str) -> list[Utterance]:
    """A transcript as the core reads it, with the places of its turns."""
    turns = parse_turns(text, "text", where)
    roles = {turn.role for turn in turns}
    starts: list[tuple[int, int, str, str | None]] = []
    at = 0
    for line in text.splitlines(keepends=True):
        match = SPEAKER.match(line.rstrip("\r\n"))
        if match and _role(match["who"]) in roles:
            starts.append((at + len(line) - len(line.lstrip()), at + match.start("text"), match["who"], match["time"]))
        at += len(line)
    stops = [start for start, *_ in starts[1:]] + [len(text)]
    found = [_slice(text, *s[:2], stop, *s[2:], where) for s, stop in zip(starts, stops, strict=True)]
    if len(found) != len(turns):
        raise ReaderError(f"{where}: {len(found)} lines name a speaker of its {len(turns)} turns; set turn_pattern")
    return found


def _role(who: str) -> str:
    return ROLES.get(who.lower(), who.lower() if who.lower() in ROLES.values() else who)


def _by_pattern(text: str, pattern: re.Pattern[str], where: str) -> list[Utterance]:
    """Turns that begin where the pattern matches; its group ``role`` says who speaks, ``time`` when."""
    matches = list(pattern.finditer(text))
    head = text[: matches[0].start() if matches else len(text)]
    if head.strip():
        line = head[: len(head) - len(head.lstrip())].count("\n") + 1
        raise ReaderError(
            f"{where}, line {line}: no turn begins here by turn_pattern {pattern.pattern!r}; "
            f"found {head.strip()[:40]!r}"
        )
    stops = [match.start() for match in matches[1:]] + [len(text)]
    times = [match.groupdict().get("time") for match in matches]
    return [
        _slice(text, match.start(), match.end(), stop, match["role"], time, where)
        for match, time, stop in zip(matches, times, stops, strict=True)
    ]


def _split(text: str, splitter: TurnSplitter, where: str) -> list[Utterance]:
    """Turns of the user's own splitter, found again in the text."""
    found: list[Utterance] = []
    at = 0
    for number, pair in enumerate(splitter(text), start=1):
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
            raise InputError(f"{where}: turn_splitter gave {pair!r} as turn {number}; expected a (role, text) pair")
        role, said = pair
        start = text.find(said, at)
        if start < 0:
            raise InputError(f"{where}: turn {number} of turn_splitter, {said[:40]!r}, does not follow character {at}")
        at = start + len(said)
        found.append(Utterance(Turn(_role(role), said), start, at, start))
    return found


# where the messages of a JSON document stand

_SPACE = re.compile(r"[\s,:]*")


def _json_spans(text: str, turns: int) -> list[tuple[int, int]]:
    """Span of each message; of the whole document where messages are nested deeper than in one list."""
    lines = [(m.start(), m.end()) for m in re.finditer(r"\S.*", text)]
    spans = lines if len(lines) == turns and _is_json_lines(text, lines) else list(_message_list(text))
    return spans if len(spans) == turns else [(0, len(text))] * turns


def _is_json_lines(text: str, lines: Sequence[tuple[int, int]]) -> bool:
    try:
        return all(isinstance(json.loads(text[start:end]), dict) for start, end in lines)
    except json.JSONDecodeError:
        return False


def _message_list(text: str) -> Iterator[tuple[int, int]]:
    """Spans of the items of the list of messages: the document itself, or a field of it."""
    at = _skip(text, 0)
    if text[at] == "{":
        decoder = json.JSONDecoder()
        at = _skip(text, at + 1)
        while text[at] != "}":
            key, at = decoder.raw_decode(text, at)
            at = _skip(text, at)
            if key in LIST_FIELDS and text[at] == "[":
                break
            _, at = decoder.raw_decode(text, at)
            at = _skip(text, at)
        else:
            return
    decoder = json.JSONDecoder()
    at = _skip(text, at + 1)
    while text[at] != "]":
        _, end = decoder.raw_decode(text, at)
        yield at, end
        at = _skip(text, end)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
