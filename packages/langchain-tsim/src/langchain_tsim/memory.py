"""TSIMMemory: the ``memory=`` of LangChain's chains."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from os import PathLike
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, get_buffer_string
from pydantic import ConfigDict, Field, PrivateAttr
from tsim_core import EpisodicMemory, Recall, Thread, Turn

from langchain_tsim._json import encode
from langchain_tsim.binding import Binding, check_limits, given
from langchain_tsim.errors import KeysError, MessageError
from langchain_tsim.messages import as_messages, message_text, to_messages, to_turns, whole_tail
from langchain_tsim.scope import Scope, Source, scope_fields
from langchain_tsim.steps import step_messages

if TYPE_CHECKING:
    from langchain_classic.base_memory import BaseMemory
else:
    try:
        from langchain_core.memory import BaseMemory  # LangChain 0.3
    except ModuleNotFoundError:
        from langchain_classic.base_memory import BaseMemory

INPUT_NAMES = ("input", "question", "query", "human_input")
OUTPUT_NAMES = ("output", "answer", "response", "text", "result", "output_text")
NEVER_INPUT = frozenset({"stop", "input_documents", "agent_scratchpad", "intermediate_steps"})
NEVER_OUTPUT = frozenset({"source_documents", "generated_question", "intermediate_steps", "messages"})
STEPS_KEY = "intermediate_steps"

RECALLED = "What was said earlier, as far as it may bear on this:"
RECENT = "The conversation so far:"


class TSIMMemory(BaseMemory):
    """Episodic memory of a chain: recalls before a run, and stores what was asked and answered after it.

    Attributes:
        memory: The memory, or where it is stored; see `langchain_tsim.open_memory` for another embedder.
        scope: Name of the thread, such as ``("alice", "support")``. Names in braces, such as ``"{user_id}"``, are taken
            from the chain's inputs.
        recall_scope: A beginning of ``scope``: recalls from all threads under it. The thread alone when None.
        memory_key: The prompt variable that takes what is recalled.
        input_key: Which input is what the user says; guessed when None.
        output_key: Which output is what the model says; guessed when None.
        exclude_input_keys: Inputs that are not what the user says, for the guess.
        return_messages: Give the prompt messages (for a ``MessagesPlaceholder``) rather than text.
        recent_turns: How many of the thread's last turns are handed along verbatim, as a buffer memory does. A tool's
            answer comes with its call. They are not recalled once more.
        k: Most episodes; the configuration's value when None.
        max_tokens: Most estimated tokens of what is recalled, recent turns not counted; the configuration's value when
            None.
        human_prefix: What recent turns of the user begin with in text.
        ai_prefix: What recent turns of the model begin with in text.

    Raises:
        ScopeError: If an id is missing, in a run; if a scope is not usable, on construction.
        KeysError: If it is unclear which input or output to take.
        InputError: If a limit is below 1.

    Example:
        ``ConversationChain(llm=llm, memory=TSIMMemory(memory="memory.db", scope="alice"))``
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    memory: EpisodicMemory | str | PathLike[str]
    scope: Scope
    recall_scope: Scope | None = None
    memory_key: str = "history"
    input_key: str | None = None
    output_key: str | None = None
    exclude_input_keys: list[str] = Field(default_factory=list)
    return_messages: bool = False
    recent_turns: int = 0
    k: int | None = None
    max_tokens: int | None = None
    human_prefix: str = "Human"
    ai_prefix: str = "AI"
    _binding: Binding = PrivateAttr()

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        check_limits(k=self.k, max_tokens=self.max_tokens, recent_turns=self.recent_turns or None)
        self._binding = Binding.of(self.memory, self.scope, self.recall_scope)
        self.memory = self._binding.memory

    @property
    def memory_variables(self) -> list[str]:
        """The prompt variable that is filled."""
        return [self.memory_key]

    # reading

    def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """What is recalled for the inputs of a run, under `memory_key`.

        Returns:
            Text, or new messages with `return_messages`; empty when there is nothing.
        """
        query, sources = self._query(inputs), self._sources(inputs)
        recent = self._recent(self._binding.thread(sources))
        recall = self._binding.recall(query, sources, _ids(recent), **self._limits())
        return self._variables(recall, to_messages(recent))

    async def aload_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Async twin of `load_memory_variables`."""
        query, sources = self._query(inputs), self._sources(inputs)
        recent = await asyncio.to_thread(self._recent, self._binding.thread(sources))
        recall = await self._binding.arecall(query, sources, _ids(recent), **self._limits())
        return self._variables(recall, to_messages(recent))

    def _limits(self) -> dict[str, Any]:
        return given(k=self.k, max_tokens=self.max_tokens)

    def _query(self, inputs: Mapping[str, Any]) -> str:
        said = [m for m in self._said(inputs) if isinstance(m, HumanMessage)]
        return message_text(said[-1]) if said else ""

    def _recent(self, thread: Thread) -> list[Turn]:
        if not self.recent_turns:
            return []
        read = self.recent_turns
        turns = thread.turns(last=read)
        while len(turns) == read and turns[0].role == "tool":  # the call it answers is further back
            read *= 2
            turns = thread.turns(last=read)
        return whole_tail(turns, self.recent_turns)

    def _variables(self, recall: Recall, recent: list[BaseMessage]) -> dict[str, Any]:
        if self.return_messages:
            recalled = [SystemMessage(f"{RECALLED}\n\n{recall.text}")] if recall.text else []
            return {self.memory_key: [*recalled, *recent]}
        if not recent:
            return {self.memory_key: recall.text}
        buffer = get_buffer_string(recent, human_prefix=self.human_prefix, ai_prefix=self.ai_prefix)
        parts = [f"{RECALLED}\n\n{recall.text}"] if recall.text else []
        return {self.memory_key: "\n\n".join([*parts, f"{RECENT}\n\n{buffer}"])}

    # writing

    def save_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """Store what was asked and answered, with the tool calls between where the chain returns them.

        What this memory put into the inputs is left out. A list of messages with answers in it is taken for the whole
        history of the thread: what is stored of it already is not stored again.
        """
        thread, turns, history = self._exchange(inputs, outputs)
        if history:
            thread.reconcile(turns)
        else:
            thread.extend(turns)

    async def asave_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """Async twin of `save_context`."""
        thread, turns, history = self._exchange(inputs, outputs)
        await (thread.areconcile(turns) if history else thread.aextend(turns))

    def clear(self, inputs: Mapping[str, Any] | None = None) -> None:
        """Delete the thread of this scope, on disk too, and no other.

        Args:
            inputs: The ids that the scope names, such as ``{"user_id": "alice"}``.
        """
        self._binding.thread(self._sources(inputs or {})).clear()

    async def aclear(self, inputs: Mapping[str, Any] | None = None) -> None:
        """Async twin of `clear`."""
        await self._binding.thread(self._sources(inputs or {})).aclear()

    def _exchange(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> tuple[Thread, list[Turn], bool]:
        """The thread, the turns of one run, and whether they are the thread's history rather than what is new."""
        said = self._said(inputs)
        answered = _as_messages(self._output(outputs), AIMessage)
        steps = step_messages(outputs.get(STEPS_KEY) or [])
        turns = to_turns([*said, *steps, *answered], timestamp=datetime.now(UTC))
        history = any(not isinstance(message, HumanMessage) for message in said)
        return self._binding.thread(self._sources(inputs)), turns, history

    # keys

    def _sources(self, inputs: Mapping[str, Any]) -> list[Source]:
        return [("the chain's inputs", inputs)]

    def _said(self, inputs: Mapping[str, Any]) -> list[BaseMessage]:
        own = {self.memory_key, *self.exclude_input_keys, *scope_fields(self._binding.scope), *NEVER_INPUT}
        key = self.input_key or _guess("input", inputs, own, INPUT_NAMES)
        if key not in inputs:
            raise KeysError(f"input_key={key!r} is not among the inputs: {sorted(inputs)}")
        return _as_messages(inputs[key], HumanMessage)

    def _output(self, outputs: Mapping[str, Any]) -> Any:
        key = self.output_key or _guess("output", outputs, NEVER_OUTPUT, OUTPUT_NAMES)
        if key not in outputs:
            raise KeysError(f"output_key={key!r} is not among the outputs: {sorted(outputs)}")
        return outputs[key]


def _ids(turns: Iterable[Turn]) -> list[str]:
    return [turn.id for turn in turns if turn.id]


def _guess(kind: str, values: Mapping[str, Any], exclude: Iterable[str], names: Iterable[str]) -> str:
    """The key of what was said: the only one, or one with a usual name."""
    keys = [key for key in values if key not in set(exclude)]
    if len(keys) == 1:
        return keys[0]
    if (usual := next((name for name in names if name in keys), None)) is not None:
        return usual
    found = "there is none" if not keys else f"it could be any of {sorted(keys)}"
    raise KeysError(f"which {kind} is to be remembered? {found}. Set {kind}_key")


def _as_messages(value: Any, kind: type[HumanMessage] | type[AIMessage]) -> list[BaseMessage]:
    """A chain's input or output as messages; data that is neither text nor messages as JSON text."""
    if isinstance(value, str):
        return [kind(str.__str__(value))]
    if isinstance(value, BaseMessage):
        return [value]
    if isinstance(value, list | tuple) and value and all(isinstance(item, BaseMessage) for item in value):
        return as_messages(value)
    try:
        return [kind(json.dumps(encode(value), ensure_ascii=False))]
    except MessageError as error:
        raise MessageError(f"a chain's {'input' if kind is HumanMessage else 'output'}: {error}") from error
