"""Memory nodes: recall before the model, remember after it.

Each is a callable that `StateGraph.add_node` takes as it is. LangGraph runs it in a worker thread where the graph runs
async, so that it never blocks the event loop.
"""
# No postponed annotations: LangGraph looks at those of `__call__` to see what to inject.

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from os import PathLike
from typing import Any, Literal

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_tsim.errors import ScopeError
from langchain_tsim.messages import message_text, to_turns
from langgraph.runtime import Runtime
from tsim_core import EpisodicMemory, Thread, TSIMError, Turn
from tsim_core.recall import DEFAULT, Limit

from langgraph_tsim.errors import MemoryWarning
from langgraph_tsim.scope import STORE_ROOT, Id, Scope, resolve
from langgraph_tsim.state import read, read_messages

OnError = Literal["raise", "warn"]
Reach = Literal["thread", "user"]
Query = Callable[[Any], str]

BRANCH_KEY = "branch"  # in Turn.metadata: the subgraph that remembered the turn first
_branches = threading.Lock()  # subgraphs read what others wrote, then write


class _MemoryNode:
    """What the nodes share.

    Args:
        memory: The memory, or the location of one that this node opens as its ``memory``, to be closed by the caller.
        user_id: Whose memory; found in the run where None, see `langgraph_tsim.scope.resolve`.
        thread_id: Which thread; found in the run where None.
        scope: "user": the thread is one of a user's, and a run without a user id is refused. "thread": the thread may
            have a memory of its own, which no recall over a user's threads finds.
        messages_key: Key of the state that holds the messages.
        on_error: What to do when the memory fails: fail the run, or go on with a `MemoryWarning`. A missing id fails
            the run in either case.
    """

    def __init__(
        self,
        memory: EpisodicMemory | str | PathLike[str],
        *,
        user_id: Id | None = None,
        thread_id: Id | None = None,
        scope: Reach = "user",
        messages_key: str = "messages",
        on_error: OnError = "raise",
    ) -> None:
        if scope not in ("thread", "user"):
            raise ValueError(f'scope={scope!r}: expected "thread" or "user"')
        if on_error not in ("raise", "warn"):
            raise ValueError(f'on_error={on_error!r}: expected "raise" or "warn"')
        self.memory = memory if isinstance(memory, EpisodicMemory) else EpisodicMemory(memory)
        self.scope = scope
        self.messages_key = messages_key
        self.on_error = on_error
        self._user_id = user_id
        self._thread_id = thread_id

    def _scope(self, config: RunnableConfig | None, runtime: Runtime[Any] | None) -> Scope:
        scope = resolve(config, runtime, user_id=self._user_id, thread_id=self._thread_id)
        if scope.user is None:
            if self.scope == "user":
                missing = "'user_id'" if scope.has_thread else "'user_id' and no 'thread_id'"
                raise ScopeError(
                    f"the run has no {missing}. Add it to config['configurable'] or to the context, after time travel "
                    "too: the config of a state snapshot does not carry the user. For a memory of the thread alone, "
                    'give the memory nodes scope="thread"'
                )
            if scope.has_thread:
                self._refuse_foreign(scope.name)
        return scope

    def _refuse_foreign(self, name: tuple[str, ...]) -> None:
        """A run that forgot its user must not start a second memory of that user's thread."""
        if len(self.memory.thread(*name)):
            return
        if any(other[1:] == name[1:] and other[0] != STORE_ROOT for other in self.memory.threads()):
            raise ScopeError(
                f"the thread {name[-1]!r} belongs to a user, and this run has no user id. The config of a state "
                "snapshot does not carry it: run with a context that has user_id, or add it to 'configurable'"
            )

    def _remember(self, state: Any, scope: Scope) -> None:
        thread = self.memory.thread(*scope.name)
        messages = read_messages(state, self.messages_key)
        remember(thread, messages, scope.branch)

    @contextmanager
    def _tolerant(self) -> Iterator[None]:
        try:
            yield
        except ScopeError:
            raise
        except TSIMError as error:
            if self.on_error == "raise":
                raise
            warnings.warn(f"{type(self).__name__} failed, the run goes on: {error}", MemoryWarning, stacklevel=3)


class RecallNode(_MemoryNode):
    """Recalls what bears on the request and puts it into the state.

    The request is the text of the human messages behind the last answer. While there is none, as in a tool loop, what
    was recalled before stays. Nothing is added to the memory; but where the state holds turns that are remembered and
    the thread went on differently from there (a replay, a fork), that other branch leaves recall first, so that a run
    does not recall its own future.

    Args:
        memory: See `RememberNode`.
        user_id: See `RememberNode`.
        thread_id: See `RememberNode`.
        scope: Recall over all threads of the run's user, who has to be known, or over the run's thread alone.
        k: Most episodes; see `tsim_core.Thread.recall`.
        max_tokens: Most tokens of the recalled text.
        exclude_messages: Leave out what the messages of the state hold already. For a model that is shown all of them;
            one that is shown a part needs the rest recalled.
        query: Makes the query from the state instead.
        messages_key: See `RememberNode`.
        context_key: Key of the state that gets the recalled text.
        on_error: See `RememberNode`.
    """

    def __init__(
        self,
        memory: EpisodicMemory | str | PathLike[str],
        *,
        user_id: Id | None = None,
        thread_id: Id | None = None,
        scope: Reach = "user",
        k: Limit = DEFAULT,
        max_tokens: Limit = DEFAULT,
        exclude_messages: bool = False,
        query: Query | None = None,
        messages_key: str = "messages",
        context_key: str = "memory_context",
        on_error: OnError = "raise",
    ) -> None:
        super().__init__(
            memory, user_id=user_id, thread_id=thread_id, scope=scope, messages_key=messages_key, on_error=on_error
        )
        self.k = k
        self.max_tokens = max_tokens
        self.exclude_messages = exclude_messages
        self.query = query
        self.context_key = context_key

    def __call__(
        self, state: Any, config: RunnableConfig | None = None, runtime: Runtime[Any] | None = None
    ) -> dict[str, Any]:
        """Recall for a state.

        Args:
            state: State of the graph.
            config: Configuration of the run.
            runtime: Runtime of the run.

        Returns:
            The update of the state: the recalled text under ``context_key``.

        Raises:
            ScopeError: If no thread, or no user where ``scope`` is "user", is to be found.
            StateError: If the state has no usable messages.
            TSIMError: If the memory fails, unless ``on_error`` is "warn": then nothing is recalled.
        """
        text = ""
        with self._tolerant():
            scope = self._scope(config, runtime)
            settled, pending = split(read_messages(state, self.messages_key))
            if self.query is None and not pending and read(state, self.context_key) is not None:
                return {}
            query = self.query(state) if self.query is not None else request(pending or settled)
            text = self._recall(query, scope, settled, pending)
        return {self.context_key: text}

    def _recall(self, query: str, scope: Scope, settled: Sequence[BaseMessage], pending: Sequence[BaseMessage]) -> str:
        exclude: dict[tuple[str, ...], list[str]] = {}
        if scope.has_thread:
            if not scope.branch and not self.memory.read_only:
                _leave_other_branches(self.memory.thread(*scope.name), settled, pending)
            if self.exclude_messages:
                exclude[scope.name] = [m.id for m in (*settled, *pending) if m.id]
        options: dict[str, Any] = {"k": self.k, "max_tokens": self.max_tokens}
        if self.scope == "user":
            return self.memory.recall(query, prefix=scope.prefix, exclude=exclude, **options).text
        return self.memory.thread(*scope.name).recall(query, exclude=exclude.get(scope.name, ()), **options).text


class RememberNode(_MemoryNode):
    """Makes the memory's thread equal the messages of the state.

    Whatever the graph went through (replay, fork, retry, trim, edit, interrupt), one copy of each turn is remembered
    and none is lost; see `tsim_core.Thread.reconcile`. Turns get the time at which they are first remembered, unless
    the message carries its own. In a subgraph, whose state may hold a part of the conversation, turns that the graph
    around it or another subgraph wrote stay.

    Args:
        memory: The memory, or the location of one that this node opens as its ``memory``, to be closed by the caller.
        user_id: Whose memory; found in the run where None, see `langgraph_tsim.scope.resolve`.
        thread_id: Which thread; found in the run where None.
        scope: "user": the thread is one of a user's, who has to be known. "thread": it may be nobody's, and no recall
            over a user's threads finds it then. That of the `RecallNode` beside it.
        messages_key: Key of the state that holds the messages.
        on_error: What to do when the memory fails: "raise" fails the run, "warn" goes on with a `MemoryWarning`; the
            next write catches up. A missing id fails the run in either case.
    """

    def __call__(
        self, state: Any, config: RunnableConfig | None = None, runtime: Runtime[Any] | None = None
    ) -> dict[str, Any]:
        """Remember the messages of a state.

        Args:
            state: State of the graph.
            config: Configuration of the run.
            runtime: Runtime of the run.

        Returns:
            An empty update.

        Raises:
            ScopeError: If no thread, or no user where ``scope`` is "user", is to be found.
            StateError: If the state has no usable messages.
            TSIMError: If the memory fails, unless ``on_error`` is "warn". Nothing is half stored.
        """
        with self._tolerant():
            self._remember(state, self._scope(config, runtime))
        return {}


class TSIMMemoryNode(RecallNode):
    """Recalls as `RecallNode` does, then remembers as `RememberNode` does: one node where two are too many.

    In front of a model it recalls for the request and remembers it together with earlier answers; behind one it
    remembers the answer. The same instance may stand in both places.
    """

    def __call__(
        self, state: Any, config: RunnableConfig | None = None, runtime: Runtime[Any] | None = None
    ) -> dict[str, Any]:
        """Recall for a state, then remember its messages; see `RecallNode` and `RememberNode`."""
        update = super().__call__(state, config, runtime)
        with self._tolerant():
            self._remember(state, self._scope(config, runtime))
        return update


def remember(thread: Thread, messages: Sequence[BaseMessage], branch: str = "") -> None:
    """Make a thread equal the messages of a graph.

    Args:
        thread: The thread.
        messages: The messages.
        branch: The subgraph that they are of; see `langgraph_tsim.scope.Scope`.
    """
    turns = to_turns(messages, timestamp=datetime.now(UTC))
    if not branch:
        thread.reconcile(turns)
        return
    with _branches:
        before = {turn.id: turn for turn in thread.turns()}
        done = thread.reconcile(
            _marked(turn, _branch(before[turn.id]) if turn.id in before else branch) for turn in turns
        )
        lost = [before[i] for i in done.superseded if i in before and _branch(before[i]) != branch]
        if lost:  # not a fork: others said it, and this subgraph does not see it
            live = thread.turns()
            old = [turn for turn in live if turn.id not in done.added]
            thread.reconcile([*old, *lost, *(turn for turn in live if turn.id in done.added)])


def _marked(turn: Turn, branch: str) -> Turn:
    return replace(turn, metadata={**(turn.metadata or {}), BRANCH_KEY: branch}) if branch else turn


def _branch(turn: Turn) -> str:
    return str((turn.metadata or {}).get(BRANCH_KEY, ""))


def split(messages: Sequence[BaseMessage]) -> tuple[list[BaseMessage], list[BaseMessage]]:
    """Messages up to the last answer, and the human ones behind it that wait for one."""
    at = len(messages)
    while at and isinstance(messages[at - 1], HumanMessage):
        at -= 1
    return list(messages[:at]), list(messages[at:])


def request(messages: Sequence[BaseMessage]) -> str:
    """The text of the last human messages in a row."""
    at = max((i for i, m in enumerate(messages) if isinstance(m, HumanMessage)), default=-1)
    return "\n".join(str(m.text) for m in split(messages[: at + 1])[1])


def _leave_other_branches(thread: Thread, settled: Sequence[BaseMessage], pending: Sequence[BaseMessage]) -> None:
    """Supersede what the thread holds behind the messages that it shares with this run."""
    live = {turn.id: turn for turn in thread.turns()}
    shared = [m for m in settled if m.id in live] or [m for m in pending if m.id in live]
    if not shared:
        return
    ends_here = shared[-1].id == next(reversed(live))
    if not ends_here or any(live[m.id].text != message_text(m) for m in shared):
        thread.reconcile(to_turns(shared))
