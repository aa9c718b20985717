"""TSIM's segmentation against gold files: a JSON list of {"utterances": [...], "segments": [turns of each segment]}."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from tsim_core import EpisodicMemory, TSIMConfig, Turn
from tsim_core.embedding import Embedder

from scale_qa.errors import GoldError
from scale_qa.segmentation_scores import SegmentationScores, score_segmentations

PRESETS: dict[str, Callable[[], TSIMConfig]] = {"tsim": TSIMConfig.default, "tsim-paper": TSIMConfig.paper}
ROLES = ("auto", "alternate", "none")
CLEAR = 3.0  # standard errors between answers and openings that make alternating roles certain
SPEAKER = "speaker"  # neither user nor assistant: a topic may start at any turn


@dataclass(frozen=True, slots=True)
class GoldDialogue:
    """A dialogue with its true segments.

    Attributes:
        utterances: At least two.
        segments: Turns of each segment; they add up to the utterances.
    """

    utterances: tuple[str, ...]
    segments: tuple[int, ...]


def read_gold(path: Path) -> list[GoldDialogue]:
    """Read a gold file. Dialogues of a single utterance, which cannot be cut, are refused like other mistakes.

    Raises:
        GoldError: If it is missing or malformed; names the dialogue.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError) as error:
        raise GoldError(f"{path}: no such file") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise GoldError(f"{path}: not JSON: {error}") from error
    if not isinstance(data, list) or not data:
        raise GoldError(f'{path}: expected a non-empty JSON list of {{"utterances", "segments"}}')
    return [_gold(f"{path}: dialogue {number}", item) for number, item in enumerate(data)]


def _gold(where: str, item: Any) -> GoldDialogue:
    if not isinstance(item, dict) or not {"utterances", "segments"} <= set(item):
        raise GoldError(f'{where}: expected an object with "utterances" and "segments"')
    utterances, segments = item["utterances"], item["segments"]
    if not isinstance(utterances, list) or not all(isinstance(text, str) for text in utterances):
        raise GoldError(f'{where}: "utterances" must be a list of strings')
    if not isinstance(segments, list) or not all(
        isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in segments
    ):
        raise GoldError(f'{where}: "segments" must be a list of positive whole numbers')
    if sum(segments) != len(utterances):
        raise GoldError(f"{where}: the segments add up to {sum(segments)} turns, there are {len(utterances)}")
    if len(utterances) < 2:
        raise GoldError(f"{where}: {len(utterances)} utterances cannot be segmented; leave it out")
    return GoldDialogue(tuple(utterances), tuple(segments))


def assign_roles(dialogues: Sequence[GoldDialogue], embedder: Embedder, rule: str = "auto") -> list[list[str]]:
    """Give the utterances of a file the roles that gold files have lost; never looks at the segments.

    Where a user and an assistant alternate, each second turn answers the one before it and is nearer to it than the
    next question is to that answer. ``auto`` looks for this in the whole file (difference of the mean cosines, at
    least three standard errors): then the roles are user and assistant in turn, which a segmenter may rely on.
    Otherwise all are speakers on a par, as between friends or in a meeting, and a topic may start with any turn.

    Args:
        dialogues: A file.
        embedder: For ``auto``.
        rule: "auto", "alternate" or "none".
    """
    if rule == "auto":
        answers: list[float] = []
        openings: list[float] = []
        for dialogue in dialogues:
            texts = [text if text.strip() else "." for text in dialogue.utterances]
            vectors = embedder.embed(texts)
            cosines = np.einsum("ij,ij->i", vectors[1:], vectors[:-1])
            answers += cosines[0::2].tolist()
            openings += cosines[1::2].tolist()
        rule = "alternate" if _standard_errors(answers, openings) >= CLEAR else "none"
    if rule == "none":
        return [[SPEAKER] * len(dialogue.utterances) for dialogue in dialogues]
    return [["user" if i % 2 == 0 else "assistant" for i in range(len(dialogue.utterances))] for dialogue in dialogues]


def evaluate(
    dialogues: Sequence[GoldDialogue],
    system: str,
    embedder: Embedder,
    roles: str = "auto",
    progress: Callable[[int], None] | None = None,
) -> tuple[SegmentationScores, str]:
    """Segment every dialogue as a thread of its own and score it.

    Args:
        dialogues: The gold.
        system: A key of `PRESETS`.
        embedder: The embedding model.
        roles: See `assign_roles`.
        progress: Called with the number of dialogues done.

    Returns:
        The scores, and the roles that were given ("alternate" or "none").
    """
    given = assign_roles(dialogues, embedder, roles)
    pairs: list[tuple[Sequence[int], Sequence[int]]] = []
    with EpisodicMemory(embedder=embedder, config=PRESETS[system]()) as memory:
        for number, (dialogue, names) in enumerate(zip(dialogues, given, strict=True)):
            thread = memory.thread(str(number))
            thread.extend(Turn(role, text) for role, text in zip(names, dialogue.utterances, strict=True))
            found = [segment.end - segment.start for segment in thread.segments()]
            pairs.append((dialogue.segments, found))
            if progress:
                progress(number + 1)
    return score_segmentations(pairs), "none" if given[0][0] == SPEAKER else "alternate"


def _standard_errors(first: Sequence[float], second: Sequence[float]) -> float:
    """By how many standard errors the mean of the first is higher (Welch); 0 where there is too little to tell."""
    if len(first) < 2 or len(second) < 2:
        return 0.0
    error = sqrt(np.var(first, ddof=1) / len(first) + np.var(second, ddof=1) / len(second))
    return float((np.mean(first) - np.mean(second)) / error) if error > 0 else 0.0
