"""Put memory nodes into a graph that is there already."""

# No postponed annotations: LangGraph looks at those of `Hook.__call__` to see what to inject.

from collections.abc import Hashable
from os import PathLike
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, StateGraph
from langgraph.runtime import Runtime
from tsim_core import EpisodicMemory
from tsim_core.recall import DEFAULT, Limit

from langgraph_tsim.errors import WiringError
from langgraph_tsim.nodes import OnError, Query, Reach, RecallNode, RememberNode, TSIMMemoryNode
from langgraph_tsim.scope import Id
from langgraph_tsim.state import MessagesMemoryState, with_memory

Builder = TypeVar("Builder", bound=StateGraph[Any, Any, Any, Any])


def add_memory(
    builder: Builder,
    memory: EpisodicMemory | str | PathLike[str],
    *,
    model_node: str,
    recall_node: str = "recall",
    remember_node: str = "remember",
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
) -> Builder:
    """Let a graph recall before one of its nodes and remember after it.

    Edges into the model node lead to the recall node from now on, and what followed the model node follows the remember
    node. A ``Command`` or ``Send`` to the model node skips the recall, and what was recalled before stays. Where the
    model node itself goes elsewhere with a ``Command``, the remember node runs beside that. Call this when the graph is
    complete, before ``compile``.

    Args:
        builder: The graph. Its state has the messages and a key for what is recalled; see
            `langgraph_tsim.state.MemoryState`.
        memory: The memory, or the location of one that is opened.
        model_node: The node that calls the model; it reads ``context_key`` of the state, for example through
            `langgraph_tsim.state.with_memory`.
        recall_node: Name of the node that recalls.
        remember_node: Name of the node that remembers.
        user_id: See `RecallNode`.
        thread_id: See `RecallNode`.
        scope: See `RecallNode`.
        k: See `RecallNode`.
        max_tokens: See `RecallNode`.
        exclude_messages: See `RecallNode`.
        query: See `RecallNode`.
        messages_key: See `RecallNode`.
        context_key: See `RecallNode`.
        on_error: See `RememberNode`.

    Returns:
        The builder.

    Raises:
        WiringError: If the graph is compiled, has no such node, has nodes of these names already, or its state lacks
            one of the keys. It is unchanged then.
    """
    _check(builder, model_node, (recall_node, remember_node), (messages_key, context_key))
    memory = memory if isinstance(memory, EpisodicMemory) else EpisodicMemory(memory)
    recall = RecallNode(
        memory,
        user_id=user_id,
        thread_id=thread_id,
        scope=scope,
        k=k,
        max_tokens=max_tokens,
        exclude_messages=exclude_messages,
        query=query,
        messages_key=messages_key,
        context_key=context_key,
        on_error=on_error,
    )
    remember = RememberNode(
        memory, user_id=user_id, thread_id=thread_id, scope=scope, messages_key=messages_key, on_error=on_error
    )

    _reroute(builder, model_node, recall_node, remember_node)
    builder.add_node(recall_node, recall)
    builder.add_node(remember_node, remember)
    builder.add_edge(recall_node, model_node)
    builder.add_edge(model_node, remember_node)
    return builder


class Hook:
    """Runs a memory node in front of the model of a prebuilt agent; see `pre_model_hook`.

    Args:
        node: The node.
    """

    def __init__(self, node: TSIMMemoryNode) -> None:
        self.node = node

    # The type of the state gives the agent's graph the key that the recalled text waits under during a tool loop.
    def __call__(self, state: MessagesMemoryState, config: RunnableConfig, runtime: Runtime[Any]) -> dict[str, Any]:
        """Recall and remember; see `TSIMMemoryNode`.

        Returns:
            ``llm_input_messages``, what the model sees, and ``memory_context``.
        """
        update = self.node(state, config, runtime)
        return {**update, "llm_input_messages": with_memory({**state, **update})}


def pre_model_hook(
    memory: EpisodicMemory | str | PathLike[str],
    *,
    user_id: Id | None = None,
    thread_id: Id | None = None,
    scope: Reach = "user",
    k: Limit = DEFAULT,
    max_tokens: Limit = DEFAULT,
    on_error: OnError = "raise",
) -> Hook:
    """Memory for ``create_react_agent(pre_model_hook=...)``.

    It recalls for the request, shows the model what was recalled and remembers the messages so far. The last answer is
    remembered with the next request, or at once with a `RememberNode` as ``post_model_hook``.

    Args:
        memory: See `RecallNode`, like the rest.
        user_id: See `RecallNode`.
        thread_id: See `RecallNode`.
        scope: See `RecallNode`.
        k: See `RecallNode`.
        max_tokens: See `RecallNode`.
        on_error: See `RememberNode`.

    Returns:
        The hook; its ``node`` holds the memory.
    """
    return Hook(
        TSIMMemoryNode(
            memory,
            user_id=user_id,
            thread_id=thread_id,
            scope=scope,
            k=k,
            max_tokens=max_tokens,
            exclude_messages=True,
            on_error=on_error,
        )
    )


def _reroute(builder: StateGraph[Any, Any, Any, Any], model: str, recall: str, remember: str) -> None:
    def source(node: str) -> str:
        return remember if node == model else node

    def target(node: str) -> str:
        return recall if node == model else node

    builder.edges = {(source(a), target(b)) for a, b in builder.edges}
    builder.waiting_edges = {(tuple(map(source, several)), target(b)) for several, b in builder.waiting_edges}
    # A condition without a map names nodes directly: any of them.
    direct: dict[Hashable, str] = {node: node for node in (*builder.nodes, END)}
    for branches in builder.branches.values():
        for name, branch in branches.items():
            ends = {label: target(node) for label, node in (branch.ends or direct).items()}
            branches[name] = branch._replace(ends=ends)
    if model in builder.branches:
        builder.branches[remember] = builder.branches.pop(model)


def _check(builder: object, model: str, new: tuple[str, str], keys: tuple[str, str]) -> None:
    if not isinstance(builder, StateGraph):
        raise WiringError(
            f"{type(builder).__name__} is no StateGraph: call add_memory on the builder, before compile()"
        )
    if builder.compiled:
        raise WiringError("the graph is compiled already: call add_memory before compile()")
    if model not in builder.nodes:
        raise WiringError(f"there is no node {model!r}; the graph has {', '.join(map(repr, builder.nodes))}")
    if len({model, *new}) < 3 or any(name in builder.nodes for name in new):
        raise WiringError(f"a node of {new} is there already: choose others with recall_node= and remember_node=")
    for key in keys:
        if key not in builder.channels:
            raise WiringError(
                f"the state has no {key!r}: declare it, as in class State(MessagesState, MemoryState), or name another "
                "key with messages_key= or context_key="
            )
