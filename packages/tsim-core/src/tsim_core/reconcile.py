"""Align a thread with a history that an agent framework hands over: the plan, as pure data.

Frameworks send the whole history again and again: replayed, forked, edited, trimmed at the head, with a summary in
place of what was trimmed. `plan` says what has to happen so that the thread equals that history with exactly one copy
of each turn and none lost.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from tsim_core.types import Turn


@dataclass(frozen=True, slots=True)
class Known:
    """What the plan needs to know of a stored turn."""

    position: int
    id: str
    role: str
    digest: int
    content: int
    live: bool


@dataclass(slots=True)
class Plan:
    """What has to happen.

    Attributes:
        update: Position of a stored turn and the index of the history turn whose text or role it takes.
        annotate: The same where only the metadata differs.
        supersede: Positions that leave recall and are kept.
        order: What stands behind the untouched head from now on: positions of stored turns and indices of new history
            turns, as ("stored", position) and ("new", index). Stored ones are moved there, and are live again.
    """

    update: list[tuple[int, int]] = field(default_factory=list)
    annotate: list[tuple[int, int]] = field(default_factory=list)
    supersede: list[int] = field(default_factory=list)
    order: list[tuple[str, int]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.update or self.annotate or self.supersede or self.order)


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What `Thread.reconcile` did, as turn ids.

    Attributes:
        added: New turns.
        updated: Turns whose content changed.
        superseded: Turns that left recall: a later history may bring them back.
        restored: Superseded turns that are back.
    """

    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.updated or self.superseded or self.restored)


def plan(known: Sequence[Known], history: Sequence[Turn], digests: Sequence[int], contents: Sequence[int]) -> Plan:
    """Work out how the thread comes to equal ``history``.

    Turns are matched by id, else by role, content and occurrence. Live turns before the first match were trimmed and
    stay. A gap between two matches was trimmed as well (and stays), unless as many other turns stand in its place: then
    it was edited. Live turns behind the last match are superseded. One exchange whose ids are all unknown is a new one,
    whatever was said before in the same words: it supersedes nothing.

    Args:
        known: All stored turns of the thread in order of position, superseded ones included.
        history: The history, oldest first; ids are unique within it.
        digests: Digest of each history turn's text.
        contents: Digest of each history turn's role, text and metadata.
    """
    result = Plan()
    by_id = {turn.id: turn for turn in known}
    partner: dict[int, Known] = {
        i: by_id[turn.id] for i, turn in enumerate(history) if turn.id is not None and turn.id in by_id
    }
    if not partner and _is_new_exchange(history):
        result.order = [("new", i) for i in range(len(history))]
        return result
    claimed = {stored.position for stored in partner.values()}
    live = [turn for turn in known if turn.live]
    path = _align(live, history, digests, partner, claimed)  # history index -> index in live, both increasing
    for i, at in path.items():
        partner[i] = live[at]
    claimed = {stored.position for stored in partner.values()}
    head = range(min(path, default=0))
    _match_content([t for t in live if t.position not in claimed], head, history, digests, partner)
    claimed = {stored.position for stored in partner.values()}
    silent = [t for t in known if not t.live and t.position not in claimed]
    _match_content(silent, range(len(history)), history, digests, partner)

    for i, stored in partner.items():
        if (stored.role, stored.digest) != (history[i].role, digests[i]):
            result.update.append((stored.position, i))
        elif history[i].id == stored.id and contents[i] != stored.content:
            result.annotate.append((stored.position, i))

    sequence: list[tuple[str, int]] = []  # the live thread as it will be
    late: list[tuple[str, int]] = []  # new at the head of a trimmed history, such as a summary: it came into being now
    fresh: list[tuple[str, int]] = []
    at = 0
    anchored = False  # a turn of the conversation proper has been matched
    for i, turn in enumerate(history):
        if i in path:
            between = live[at : path[i]]
            replaced = [stored for stored in between if stored.position not in claimed]
            if anchored and fresh and len(replaced) == len(fresh):
                result.supersede += [stored.position for stored in replaced]
                between = [stored for stored in between if stored.position in claimed]
            sequence += [("stored", stored.position) for stored in between]
            if anchored or not between:
                sequence += fresh
            else:
                late += fresh
            fresh = []
            sequence.append(("stored", live[path[i]].position))
            at = path[i] + 1
            anchored = anchored or turn.role != "system"
        elif i not in partner:
            fresh.append(("new", i))
        elif not partner[i].live:
            fresh.append(("stored", partner[i].position))
        # else: a live turn that the history has in another place; it stays where it is
    tail = live[at:]
    if path:
        result.supersede += [stored.position for stored in tail if stored.position not in claimed]
        tail = [stored for stored in tail if stored.position in claimed]
    # else nothing of the thread is in this history: all that is remembered was trimmed
    sequence += [("stored", stored.position) for stored in tail] + late + fresh

    gone = set(result.supersede)
    present = [("stored", stored.position) for stored in live if stored.position not in gone]
    same = 0
    while same < min(len(present), len(sequence)) and present[same] == sequence[same]:
        same += 1
    result.order = sequence[same:]
    return result


def _is_new_exchange(history: Sequence[Turn]) -> bool:
    """Whether a history whose ids are unknown says at most one thing of the user's, under ids of its own.

    Such a history comes from a run that was given no more than the new question: its words prove nothing.
    """
    return all(turn.id is not None for turn in history) and sum(turn.role == "user" for turn in history) <= 1


def _align(
    live: Sequence[Known],
    history: Sequence[Turn],
    digests: Sequence[int],
    partner: dict[int, Known],
    claimed: set[int],
) -> dict[int, int]:
    """Match history and live turns in order; a history turn with a known id only matches that turn."""
    keys_live = [("id", stored.id) if stored.position in claimed else (stored.role, stored.digest) for stored in live]
    keys_history = [
        ("id", partner[i].id) if i in partner else (turn.role, digests[i]) for i, turn in enumerate(history)
    ]
    if not keys_live or not keys_history:
        return {}
    # The usual case is a suffix of the thread, followed by what is new: no need for a general alignment.
    overlap = min(len(keys_live), len(keys_history))
    known_live = set(keys_live)
    for size in range(overlap, 0, -1):
        start = len(keys_live) - size
        if keys_live[start] == keys_history[0] and keys_live[start:] == keys_history[:size]:
            if known_live.isdisjoint(keys_history[size:]) or size == overlap:
                return {i: start + i for i in range(size)}
            break  # what follows is known too: perhaps the overlap is by chance
    path: dict[int, int] = {}
    matcher = SequenceMatcher(None, keys_live, keys_history, autojunk=False)
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            path[block.b + offset] = block.a + offset
    return path


def _match_content(
    stored: Sequence[Known],
    unmatched: Sequence[int],
    history: Sequence[Turn],
    digests: Sequence[int],
    partner: dict[int, Known],
) -> None:
    """Find history turns without a partner among stored ones by role and content, in order of occurrence."""
    waiting: dict[tuple[str, int], deque[Known]] = defaultdict(deque)
    for turn in stored:
        waiting[turn.role, turn.digest].append(turn)
    for i in unmatched:
        queue = waiting.get((history[i].role, digests[i]))
        if i not in partner and queue:
            partner[i] = queue.popleft()
