"""Whose memory a run reads and writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_tsim.errors import ScopeError
from langchain_tsim.scope import Source, resolve_scope, run_sources
from langgraph.runtime import Runtime

Id = str | int | UUID

NO_USER = "-"
"""First label of threads without a user: a thread that is called like a user is none of that user's."""

STORE_ROOT = "-store-"
"""First label under which `langgraph_tsim.store.TSIMStore` keeps its items."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Thread and user of a run.

    Attributes:
        user: The user; None where there is none.
        sources: Where the ids came from.
        branch: The subgraph that runs, such as "researcher" or "team|researcher"; empty for the graph itself.
    """

    user: str | None
    sources: tuple[Source, ...]
    branch: str = ""

    @property
    def has_thread(self) -> bool:
        """Whether there is a thread."""
        return _has("thread_id", self.sources)

    @property
    def prefix(self) -> tuple[str, ...]:
        """What the names of all threads of the user begin with.

        Raises:
            ScopeError: If there is no user.
        """
        return resolve_scope(("{user_id}",), self.sources)

    @property
    def name(self) -> tuple[str, ...]:
        """Name of the thread in the memory: user and thread.

        Raises:
            ScopeError: If there is no thread.
        """
        return resolve_scope(("{user_id}" if self.user is not None else NO_USER, "{thread_id}"), self.sources)


def resolve(
    config: Mapping[str, Any] | None,
    runtime: Runtime[Any] | None,
    *,
    user_id: Id | None = None,
    thread_id: Id | None = None,
) -> Scope:
    """Find thread and user of a run.

    Each is taken from the first that has it: the argument, ``runtime.context`` (a mapping or an object),
    ``config["configurable"]``, and what LangGraph itself knows (``runtime.execution_info.thread_id``, the user whom
    LangGraph Server authenticated). Whole numbers and UUIDs become text.

    Args:
        config: Configuration of the run.
        runtime: Runtime of the run.
        user_id: The user, whatever the run says.
        thread_id: The thread, whatever the run says.

    Raises:
        ScopeError: If the user id is there and not usable. A missing id is an error where it is needed.
    """
    given = {"user_id": user_id, "thread_id": thread_id}
    sources = run_sources(given=given, runtime=runtime, config=config)
    if runtime is not None and runtime.server_info is not None and runtime.server_info.user is not None:
        sources.append(("runtime.server_info", {"user_id": runtime.server_info.user.identity}))
    user = resolve_scope(("{user_id}",), sources)[0] if _has("user_id", sources) else None
    if user in (NO_USER, STORE_ROOT):
        raise ScopeError(f"the user id {user!r} is reserved; use another")
    namespace = ((config or {}).get("configurable") or {}).get("checkpoint_ns") or ""
    return Scope(user, tuple(sources), branch_of(namespace))


def branch_of(checkpoint_ns: str) -> str:
    """The subgraphs of a checkpoint namespace, without the ids of their tasks and without the running node."""
    return "|".join(part.split(":")[0] for part in checkpoint_ns.split("|")[:-1])


def _has(field: str, sources: Iterable[Source]) -> bool:
    values = (s.get(field) if isinstance(s, Mapping) else getattr(s, field, None) for _, s in sources)
    return any(value is not None for value in values)
