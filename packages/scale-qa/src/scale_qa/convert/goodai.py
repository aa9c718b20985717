"""GoodAI-LTM logs: tasks that are really interleaved in one thread, with fillers between.

The log asks the same kind of question in several rounds (the number in a test's id), and a later round contradicts an
earlier one, so each round is a batch: the thread up to the round's last question, without the questions of the round
and their answers (else a memory would find the question itself) and without turns of later rounds. Earlier rounds
stay in it whole, as near-duplicates. ChapterBreak is dropped: it quotes fan fiction.

The log holds no evidence ids. Evidence is what the task's user turns said before the question: all of them, but the
last one for Colours (it supersedes), the first for Restaurant (the rule of the game), and for Jokes the one told at
the time that the question names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tsim_core.types import Turn

from scale_qa.convert.base import Conversation, UniqueIds, shape_of, spans_of
from scale_qa.errors import ImportFormatError, RecordError
from scale_qa.package import Question
from scale_qa.records import read_jsonl

_ROLES = {0: "user", 3: "user", 4: "assistant", 5: "assistant"}  # the log's event types that are messages
_TOLERANCE = 600.0  # seconds by which "2 hours 21 minutes ago" may be off


@dataclass(frozen=True, slots=True)
class _Event:
    role: str
    text: str
    time: float
    task: str  # "" for filler
    round: int
    question: bool


def read_goodai(path: Path) -> Iterator[Conversation]:
    """Read a ``master_log.jsonl``.

    Raises:
        ImportFormatError: If it is none.
    """
    try:
        rows = [row for _, row in read_jsonl(path)]
    except RecordError as error:
        raise ImportFormatError(str(error)) from error
    with shape_of("goodai", path):
        kept: list[_Event] = []
        dropped = 0
        for row in rows:
            if row["type"] not in _ROLES:
                continue
            if row["test_id"].startswith("ChapterBreak"):
                dropped += 1
                continue
            task, _, number = row["test_id"].rpartition(" - ")
            message = row["data"]["message"]
            kept.append(_Event(_ROLES[row["type"]], message, row["timestamp"], task, int(number or -1), _asks(row)))
        for number in sorted({event.round for event in kept if event.task}):
            left_out = {"turns of ChapterBreak": dropped} if dropped and number == 0 else {}
            yield _round(f"{path.stem}-{number}", kept, number, left_out)


def _asks(row: dict[str, object]) -> bool:
    data = row["data"]
    return isinstance(data, dict) and bool(data["is_question"])


def _round(name: str, events: Sequence[_Event], number: int, left_out: dict[str, int]) -> Conversation:
    last = {event.task: i for i, event in enumerate(events) if event.round == number and event.question}
    asked: list[_Event] = []
    out: set[int] = set()
    for i, event in enumerate(events):
        if event.round != number or not event.question or event.role != "user":
            continue
        if event.task == "Restaurant" and any(other.task == "Restaurant" for other in asked):
            continue  # its later questions lean on the meal so far: they are history
        asked.append(event)
        answer = next((j for j in range(i + 1, len(events)) if events[j].task == event.task), i)
        out |= {i, answer}
    stream = [
        event
        for i, event in enumerate(events[: max(last.values(), default=-1) + 1])
        if i not in out
        and (not event.task or event.round < number or (event.round == number and i < last.get(event.task, -1)))
    ]
    counts: Counter[str] = Counter(left_out)
    questions: list[Question] = []
    unique = UniqueIds()
    for first in {(event.task, event.text): event for event in reversed(asked)}.values():
        evidence = _evidence(first, stream)
        if not evidence:
            counts[f"{first.task} questions whose evidence cannot be told"] += 1
            continue
        questions.append(
            Question(
                id=unique(f"{name}:{first.task.replace(' ', '')}"),
                query=first.text,
                evidence=evidence,
                answer="",
                topic=first.task,
                asked_at=_when(first),
            )
        )
    turns = [Turn(event.role, event.text, timestamp=_when(event)) for event in stream]
    units = [f"{event.task} - {event.round}" if event.task else "" for event in stream]
    return Conversation(name, turns, questions, spans_of(units), {}, counts)


def _evidence(question: _Event, stream: Sequence[_Event]) -> tuple[int, ...]:
    told = [
        i
        for i, event in enumerate(stream)
        if event.task == question.task
        and event.round == question.round
        and event.role == "user"
        and event.time < question.time
    ]
    if question.task == "Colours":
        return tuple(told[-1:])
    if question.task == "Restaurant":
        return tuple(told[:1])
    if question.task == "Jokes":
        ago = re.search(r"(?:(\d+) hours?)?\s*(?:(\d+) minutes?)?\s+ago", question.text)
        if ago is None or not any(ago.groups()):
            return ()
        seconds = 3600 * int(ago[1] or 0) + 60 * int(ago[2] or 0)
        near = min(told, key=lambda i: abs(question.time - seconds - stream[i].time), default=None)
        if near is None or abs(question.time - seconds - stream[near].time) > _TOLERANCE:
            return ()
        return (near,)
    return tuple(told)


def _when(event: _Event) -> datetime:
    return datetime.fromtimestamp(event.time, UTC)
