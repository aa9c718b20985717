"""LongMemEval (Wu et al. 2025): each question has a haystack of sessions of its own, hence a batch of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tsim_core.types import Turn

from scale_qa.convert.base import Conversation, read_json, shape_of, spans_of
from scale_qa.package import Question

_NO_LABELS = "questions whose turns carry no has_answer"


def read_longmemeval(path: Path) -> Iterator[Conversation]:
    """Read a LongMemEval file. Evidence is what ``has_answer`` marks; without such marks a question is left out.

    Raises:
        ImportFormatError: If it is none.
    """
    data = read_json(path)
    with shape_of("longmemeval", path):
        for entry in data if isinstance(data, list) else [data]:
            yield _conversation(entry)


def _conversation(entry: Mapping[str, Any]) -> Conversation:
    sessions = sorted(
        zip(entry["haystack_dates"], entry["haystack_session_ids"], entry["haystack_sessions"], strict=True),
        key=lambda session: _time(session[0]),
    )
    turns: list[Turn] = []
    units: list[str] = []
    evidence: list[int] = []
    ids: dict[int, str] = {}
    for date, session_id, session in sessions:
        for number, message in enumerate(session):
            if message.get("has_answer"):
                evidence.append(len(turns))
            ids[len(turns)] = f"{session_id}:{number}"
            turns.append(Turn(message["role"], message["content"], timestamp=_time(date)))
            units.append(session_id)
    name = entry["question_id"]
    if not evidence:
        reason = "unanswerable questions" if name.endswith("_abs") else _NO_LABELS
        return Conversation(name, turns, (), left_out={reason: 1})
    question = Question(
        id=name,
        query=entry["question"],
        evidence=tuple(evidence),
        answer=str(entry["answer"]),
        topic=entry["question_type"],
        asked_at=_time(entry["question_date"]),
    )
    return Conversation(name, turns, (question,), spans_of(units), ids)


def _time(value: str) -> datetime:
    """Read "2023/05/30 (Tue) 20:42" or ISO 8601; the weekday's name depends on a locale, so it is cut out first."""
    plain = re.sub(r"\s*\(.*?\)\s*", " ", value).strip()
    if "T" in plain:
        return datetime.fromisoformat(plain).replace(tzinfo=UTC)
    return datetime.strptime(plain, "%Y/%m/%d %H:%M").replace(tzinfo=UTC)
