"""Thread: one conversation of a memory. Turns go in, episodes come out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, overload

from tsim_core.embedding import Vectors
from tsim_core.errors import DuplicateTurnError, InputError
from tsim_core.intake import Prepared, content_digest, named, prepare
from tsim_core.recall import DEFAULT, Filter, Limit, limit, public_segment, whole_episodes
from tsim_core.reconcile import Known, Plan, Reconciled, plan
from tsim_core.store.base import ThreadRow, TurnRow
from tsim_core.types import Episode, Recall, Segment, Turn
from tsim_core.writer import ThreadWriter, columns_of

if TYPE_CHECKING:
    from tsim_core.memory import EpisodicMemory, Progress

T = TypeVar("T")


class Thread:
    """One conversation. Get it from `EpisodicMemory.thread`.

    Attributes:
        name: Its namespace.
    """

    def __init__(self, memory: EpisodicMemory, name: tuple[str, ...]) -> None:
        self.memory = memory
        self.name = name

    def __repr__(self) -> str:
        return f"Thread{self.name!r}"

    # writing

    @overload
    def add(self, turn: Turn, /) -> str: ...
    @overload
    def add(
        self,
        role: str,
        text: str,
        /,
        *,
        id: str | None = None,
        timestamp: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> str: ...
    def add(self, turn: Turn | str, text: str | None = None, /, **fields: Any) -> str:
        """Add one turn, given whole or as role and text.

        Returns:
            Its id. A turn whose id is stored already with the same content is not added again.

        Raises:
            InputError: If the turn is not usable.
            DuplicateTurnError: If its id is taken by other content.
            EmbedderError: If it cannot be embedded.
            StoreError: If it cannot be written. Whatever is raised, nothing is stored.
        """
        if isinstance(turn, str):
            if text is None:
                raise InputError("add(role, text) needs a text; add(Turn(...)) takes a whole turn")
            turn = Turn(turn, text, **fields)
        elif text is not None or fields:
            raise InputError("add(turn) takes nothing else; put id, timestamp and metadata into the turn")
        return self.extend([turn])[0]

    def extend(self, turns: Iterable[Turn], progress: Progress | None = None) -> list[str]:
        """Add turns in one transaction: all or none. They are embedded in batches, equal texts once.

        Args:
            turns: In order, oldest first.
            progress: Called as turns are embedded, and again as they are stored.

        Returns:
            Their ids. Raises as `add` does.
        """
        prepared = prepare(turns)
        if not prepared:
            return []
        with self.memory._write_lock(self.name):
            return self._insert(prepared, self._embed(prepared, progress), progress)

    def _insert(
        self, prepared: Sequence[Prepared], vectors: Mapping[str, Vectors], progress: Progress | None = None
    ) -> list[str]:
        with self._writing() as (row, writer):
            ids, fresh = self._new_rows(row, prepared)
            writer.append(fresh, {r.position: vectors[r.turn.text] for r in fresh if r.turn.text.strip()}, progress)
        return ids

    def reconcile(self, history: Iterable[Turn]) -> Reconciled:
        """Make the thread equal a history, with one copy of each turn and none lost. Running it twice changes nothing.

        Turns are matched by id, else by role, content and occurrence. A missing head was trimmed and stays remembered,
        changed content is updated, a divergent tail is superseded (out of recall, kept, back when a later history
        brings it back), and what is new is appended; see `tsim_core.reconcile.plan`.

        Args:
            history: Oldest first; ids, where given, are unique within it.

        Returns:
            What was done. Raises as `add` does.
        """
        prepared = prepare(history)
        ids = [p.turn.id for p in prepared if p.turn.id is not None]
        if len(set(ids)) < len(ids):
            twice = next(i for i in ids if ids.count(i) > 1)
            raise DuplicateTurnError(f"the history holds the id {twice!r} twice; ids are unique within a thread")
        if not prepared:
            return Reconciled()
        with self.memory._write_lock(self.name):
            with self.memory._guard():
                rows = self._rows()
                todo = self._plan(rows[0], prepared)[1] if rows else None
            # Embed before the transaction, so that others need not wait for the model.
            needed = range(len(prepared)) if todo is None else _needed(todo)
            vectors = self._embed([prepared[i] for i in needed], None)
            if todo is not None and not todo:
                return Reconciled()
            with self._writing() as (row, writer):
                return self._apply(row, writer, prepared, vectors)

    def _plan(self, row: ThreadRow, prepared: Sequence[Prepared]) -> tuple[dict[int, Known], Plan]:
        known = [Known(*columns) for columns in self.memory._store.outline(row.key)]
        contents = [content_digest(p.turn) for p in prepared]
        todo = plan(known, [p.turn for p in prepared], [p.digest for p in prepared], contents)
        return {k.position: k for k in known}, todo

    def _apply(
        self,
        row: ThreadRow,
        writer: ThreadWriter,
        prepared: Sequence[Prepared],
        vectors: dict[str, Vectors],
    ) -> Reconciled:
        store = self.memory._store
        known, todo = self._plan(row, prepared)
        # Another process may have written since: what is needed may have changed.
        vectors |= self._embed([p for i in _needed(todo) if (p := prepared[i]).turn.text not in vectors], None)
        taken = {k.id for k in known.values()} | {p.turn.id for p in prepared if p.turn.id}
        position = row.next
        new: list[TurnRow] = []
        moves: dict[int, int] = {}
        updates = [
            self._row(at, replace(prepared[i].turn, id=known[at].id), prepared[i].digest, known[at].live)
            for at, i in todo.update
        ]
        if todo.annotate:
            annotated = [replace(prepared[i].turn, id=known[at].id) for at, i in todo.annotate]
            store.annotate(row.key, {at: turn for (at, _), turn in zip(todo.annotate, annotated, strict=True)})
        for kind, which in todo.order:
            if kind == "stored":
                moves[which] = position
            else:
                new.append(self._row(position, named(prepared[which].turn, position, taken), prepared[which].digest))
            position += 1
        by_position = {r.position: vectors[r.turn.text] for r in (*updates, *new) if r.turn.text.strip()}
        if not (updates or todo.supersede or moves):
            writer.append(new, by_position)
        else:
            store.put_turns(row.key, [*updates, *new], columns_of([*updates, *new], by_position))
            store.set_live(row.key, todo.supersede, live=False)
            store.set_live(row.key, list(moves), live=True)
            store.move_turns(row.key, moves)
            changed = [at for at, _ in todo.update] + todo.supersede + list(moves)
            writer.rewind(min([*changed, row.next]), until=position)
        if todo.annotate:
            writer.reload()
        return Reconciled(
            added=tuple(r.turn.id or "" for r in new),
            updated=tuple(known[at].id for at, _ in (*todo.update, *todo.annotate)),
            superseded=tuple(known[at].id for at in todo.supersede),
            restored=tuple(known[at].id for at in moves if not known[at].live),
        )

    def forget(
        self,
        turn_ids: Sequence[str] | None = None,
        *,
        before: datetime | None = None,
        after: datetime | None = None,
    ) -> int:
        """Delete turns from every view and from the bytes of the file.

        Args:
            turn_ids: Turns to delete. An id that is not stored is an error.
            before: Delete turns whose timestamp is earlier.
            after: Delete turns whose timestamp is this or later. With ``before``: those in between.

        Returns:
            Number of turns deleted, superseded ones included.

        Raises:
            InputError: If nothing is said of what to forget (use `clear` for all), an id is unknown, or a time is no
                datetime.
        """
        if turn_ids is None and before is None and after is None:
            raise InputError("forget needs turn_ids, before or after; clear() forgets the whole thread")
        if isinstance(turn_ids, str):
            raise InputError(f"turn_ids is one string; pass a list, such as [{turn_ids!r}]")
        within = Filter(after, before)
        with self.memory._write_lock(self.name), self.memory._guard():
            row = self.memory._store.thread(self.name)
            positions = [] if row is None else self._selected(row, turn_ids, within)
            if row is None and turn_ids:
                raise InputError(f"there is no thread {self.name!r}, hence no turn {turn_ids[0]!r}")
            if not positions:
                return 0
            with self._writing() as (row, writer):
                self.memory._store.delete_turns(row.key, positions)
                writer.forgotten(positions)
            self.memory._store.scrub()
            return len(positions)

    def _selected(
        self,
        row: ThreadRow,
        turn_ids: Sequence[str] | None,
        within: Filter,
    ) -> list[int]:
        store = self.memory._store
        chosen: list[int] | None = None
        if turn_ids is not None:
            found = store.find_ids(row.key, turn_ids)
            missing = [i for i in turn_ids if i not in found]
            if missing:
                raise InputError(f"{self.name!r} has no turn {missing[0]!r}; nothing was forgotten")
            chosen = sorted(found.values())
        if not within:
            return chosen or []
        return [r.position for r in store.turns(row.key, chosen) if within.times_match(r.turn.timestamp)]

    def clear(self) -> int:
        """Delete the thread with all that is in it, from the bytes of the file too. Returns the number of turns."""
        with self.memory._write_lock(self.name), self.memory._guard():
            store = self.memory._store
            with store.transaction():
                row = store.thread(self.name)
                count = 0
                if row is not None:
                    count = sum(1 for _ in store.turns(row.key))
                    store.delete_thread(row.key)
            self.memory._drop(self.name)
            if row is not None:
                store.scrub()
            return count

    # reading

    def recall(
        self,
        query: str,
        k: Limit = DEFAULT,
        max_tokens: Limit = DEFAULT,
        *,
        after: datetime | None = None,
        before: datetime | None = None,
        where: Mapping[str, Any] | None = None,
        exclude: Collection[str] = (),
        query_vector: Vectors | None = None,
    ) -> Recall:
        """Find the episodes that bear on a query, best first, and lay them out for a prompt.

        Args:
            query: What to look for; a blank one finds nothing.
            k: Most episodes; None for as many as fit.
            max_tokens: Most estimated tokens of the text; None for whole episodes without limit. The configuration's
                values where not given.
            after: Only turns of this time or later; turns without a time are left out.
            before: Only turns earlier than this: what was known as of then.
            where: Only turns whose metadata has these values.
            exclude: Ids of turns to leave out, since the prompt holds them already; unknown ones are passed over.
            query_vector: The query's unit vector, shape (dimension,), where it is known already.

        Raises:
            InputError: If a limit is below 1, or both are None, or a filter is of the wrong type.
        """
        filter_ = Filter(after, before, where, {self.name: exclude} if exclude else {})
        return self.memory._recall(query, self._rows, k, max_tokens, filter_, query_vector)

    def episodes(self) -> list[Episode]:
        """All episodes in order of their first turn, the open one included."""
        with self.memory._reading():
            found: list[Episode] = []
            for row in self._rows():
                found += whole_episodes(self.memory._store, self.memory._index(row))
            return found

    def segments(self) -> list[Segment]:
        """All segments in order, the open one included: where the thread was cut, and why."""
        with self.memory._reading():
            store = self.memory._store
            return [public_segment(self.name, segment) for row in self._rows() for segment in store.segments(row.key)]

    def turns(self, last: int | None = None) -> list[Turn]:
        """Live turns in order.

        Args:
            last: Only so many of the newest, read without the rest; all when None.

        Raises:
            InputError: If ``last`` is no whole number of at least 1.
        """
        limit("last", last, None)
        with self.memory._guard():
            return [r.turn for row in self._rows() for r in self.memory._store.newest(row.key, last)]

    def __len__(self) -> int:
        with self.memory._guard():
            return sum(self.memory._store.size(row.key) for row in self._rows())

    def __bool__(self) -> bool:
        return True  # an empty thread is a thread

    def _rows(self) -> list[ThreadRow]:
        row = self.memory._store.thread(self.name)
        return [] if row is None else [row]

    # parts

    @contextmanager
    def _writing(self) -> Iterator[tuple[ThreadRow, ThreadWriter]]:
        """A write transaction on this thread; the index is in line with its outcome."""
        memory = self.memory
        with memory._guard():
            try:
                with memory._store.transaction():
                    row = memory._store.thread(self.name)
                    row = row or memory._store.put_thread(ThreadRow(0, self.name, 0, 0, {}))
                    yield row, (writer := memory._writer(row))
            except BaseException:
                memory._drop(self.name)  # what the index took in was rolled back
                raise
            memory._keep(self.name, writer)

    def _embed(self, prepared: Sequence[Prepared], progress: Progress | None) -> dict[str, Vectors]:
        """Vectors by text; texts that are stored already are not embedded again."""
        texts = {p.digest: p.turn.text for p in prepared if p.turn.text.strip()}
        with self.memory._guard():
            known = self.memory._store.find_vectors(texts)
        missing = [text for text in dict.fromkeys(texts.values()) if text not in known]
        if missing:
            known.update(zip(missing, self.memory.embed_turns(missing, progress), strict=True))
        return known

    def _row(self, position: int, turn: Turn, digest: int, live: bool = True) -> TurnRow:
        tokens = self.memory.config.estimator(turn.text)
        return TurnRow(position, turn, tokens, digest, live)

    def _new_rows(self, row: ThreadRow, prepared: Sequence[Prepared]) -> tuple[list[str], list[TurnRow]]:
        """Ids of all turns, and rows of those that are not stored yet."""
        store = self.memory._store
        given = [p.turn.id for p in prepared if p.turn.id is not None]
        positions = store.find_ids(row.key, given)
        content = {r.turn.id: (r.turn.role, r.turn.text) for r in store.turns(row.key, list(positions.values()))}
        automatic = [f"t{row.next + i}" for i in range(len(prepared))]
        taken = set(given) | store.find_ids(row.key, automatic).keys()
        ids: list[str] = []
        fresh: list[TurnRow] = []
        for p in prepared:
            id_ = p.turn.id
            if id_ is not None and id_ in content:
                if content[id_] != (p.turn.role, p.turn.text):
                    raise DuplicateTurnError(
                        f"the id {id_!r} in {self.name!r} is taken by a turn with other content; give the new turn its "
                        "own id, or use reconcile() to change a stored one"
                    )
                ids.append(id_)
                continue
            position = row.next + len(fresh)
            turn = named(p.turn, position, taken)
            assert turn.id is not None
            content[turn.id] = (turn.role, turn.text)
            ids.append(turn.id)
            fresh.append(self._row(position, turn, p.digest))
        return ids, fresh

    # async twins

    async def aadd(self, *args: Any, **fields: Any) -> str:
        """Async twin of `add`."""
        return await self._async(lambda: self.add(*args, **fields))

    async def aextend(self, turns: Iterable[Turn], progress: Progress | None = None) -> list[str]:
        """Async twin of `extend`."""
        return await self._async(lambda: self.extend(turns, progress))

    async def areconcile(self, history: Iterable[Turn]) -> Reconciled:
        """Async twin of `reconcile`."""
        return await self._async(lambda: self.reconcile(history))

    async def arecall(self, query: str, k: Limit = DEFAULT, max_tokens: Limit = DEFAULT, **options: Any) -> Recall:
        """Async twin of `recall`."""
        return await self._async(lambda: self.recall(query, k, max_tokens, **options))

    async def aforget(self, turn_ids: Sequence[str] | None = None, **options: Any) -> int:
        """Async twin of `forget`."""
        return await self._async(lambda: self.forget(turn_ids, **options))

    async def aclear(self) -> int:
        """Async twin of `clear`."""
        return await self._async(self.clear)

    async def aturns(self, last: int | None = None) -> list[Turn]:
        """Async twin of `turns`."""
        return await self._async(lambda: self.turns(last))

    async def aepisodes(self) -> list[Episode]:
        """Async twin of `episodes`."""
        return await self._async(self.episodes)

    @staticmethod
    async def _async(call: Callable[[], T]) -> T:
        return await asyncio.to_thread(call)


def _needed(todo: Plan) -> list[int]:
    """Indices of the history turns that have to be embedded."""
    return [i for _, i in todo.update] + [i for kind, i in todo.order if kind == "new"]
