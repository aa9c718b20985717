"""Episodes as LangChain documents and as JSON data."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from tsim_core import Episode, Turn


def to_document(episode: Episode) -> Document:
    """An episode as a document: its text with speakers and times, and all else as JSON-safe metadata."""
    return Document(
        id=episode.id,
        page_content="\n".join(_line(turn) for turn in episode.turns if turn.text.strip()),
        metadata={
            "episode_id": episode.id,
            "thread": list(episode.thread),
            "score": float(episode.score),
            "evidence": {name: float(value) for name, value in episode.evidence.items()},
            "turn_ids": [turn.id for turn in episode.turns],
            "roles": [turn.role for turn in episode.turns],
            "timestamps": [_time(turn) for turn in episode.turns],
            "omitted": int(episode.omitted),
        },
    )


def to_json(episode: Episode) -> dict[str, Any]:
    """An episode as JSON data, in the form of ``tsim recall --json``."""
    return {
        "id": episode.id,
        "thread": list(episode.thread),
        "score": float(episode.score),
        "evidence": {name: float(value) for name, value in episode.evidence.items()},
        "turns": [
            {"id": turn.id, "role": turn.role, "text": turn.text, "timestamp": _time(turn)} for turn in episode.turns
        ],
    }


def _line(turn: Turn) -> str:
    name = (turn.metadata or {}).get("name")
    speaker = name if isinstance(name, str) and name else turn.role
    when = f" ({turn.timestamp:%Y-%m-%d %H:%M})" if turn.timestamp else ""
    return f"{speaker}{when}: {turn.text}"


def _time(turn: Turn) -> str | None:
    return turn.timestamp.isoformat() if turn.timestamp else None
