"""TSIMNodeParser: chat transcripts to episode nodes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.callbacks import CallbackManager
from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import BaseNode, Document
from llama_index.core.utils import get_tqdm_iterable
from llama_index.node_parser.tsim.conversations import (
    Conversation,
    Reading,
    TurnSplitter,
    Utterance,
    digest,
    messages_conversation,
)
from llama_index.node_parser.tsim.nodes import NodeOptions, conversation_nodes
from llama_index.utils.tsim.embedding import DEFAULT_EMBED_MODEL, EmbedModelField, aembed_texts, embed_texts
from llama_index.utils.tsim.settings import ALGORITHM, ConfigField, KnownSettings
from pydantic import BeforeValidator, Field, PlainSerializer, computed_field, field_validator
from tsim_core import Embedder, EpisodicMemory, InputError, TSIMConfig
from tsim_core.readers import FORMATS

logger = logging.getLogger(__name__)


def _function_name(function: Callable[..., Any] | None) -> str | None:
    return None if function is None else f"{function.__module__}.{function.__qualname__}"


def _function(value: Any) -> Any:
    """A function as it is; its name, as `to_dict` gives it, says nothing that could be called."""
    if isinstance(value, str):
        raise ValueError(f"the function {value} does not travel in data: pass it again, from_dict(data, name=function)")
    return value


Function = Annotated[Any, BeforeValidator(_function), PlainSerializer(_function_name)]


class TSIMNodeParser(KnownSettings, NodeParser):
    r"""Cuts chat transcripts into episodes: runs of turns about one thing, as one node each.

    Four kinds of input: a document that holds a transcript (``User: ...``), a document that holds JSON (a message list,
    JSON lines, a ChatGPT export and the other formats of the core), one document for each turn (with a role in its
    metadata, grouped by session), and chat messages (`get_nodes_from_messages`).

    A node's text is its part of the transcript, ``start_char_idx`` and ``end_char_idx`` say where it stands; a JSON
    document's nodes are written as lines, and their span is that of the messages in the JSON text. Turns that came in
    documents or messages of their own are placed in the transcript of their session. PREVIOUS and NEXT stay within a
    session, ids are the same each time, and the metadata is flat: ``episode_id``, ``turn_start``, ``turn_end``,
    ``speakers``, ``start_time``, ``end_time``, ``session_id`` and ``turns`` (JSON). A document that cannot be read is
    left out and logged as an error, or raised with ``on_error="raise"``; what the embedding model raises is raised.

    Example:
        >>> from llama_index.core import Document
        >>> parser = TSIMNodeParser()
        >>> [node.text for node in parser.get_nodes_from_documents([Document(text="User: hi\nAssistant: hello")])]
        ['User: hi\nAssistant: hello']
    """

    embed_model: EmbedModelField = Field(
        default=DEFAULT_EMBED_MODEL,
        description="A LlamaIndex embedding model, or the name of one of the core's own.",
    )
    config: ConfigField = Field(
        default_factory=TSIMConfig.default, description="The core's configuration: a TSIMConfig or a preset's name."
    )
    link: bool = Field(
        default=False,
        description="Join the runs of an episode that the talk left and came back to into one node. Otherwise each run "
        "is a node, and those of one episode share its `episode_id` where the configuration links them.",
    )
    include_turns: bool = Field(default=False, description="Also give each turn as a CHILD node of its episode.")
    format: str = Field(default="auto", description=f"How documents are written: one of {', '.join(FORMATS)}.")
    turn_pattern: str | None = Field(
        default=None,
        description="Regular expression (multiline) that matches where a turn begins, up to its words; its group "
        "`role` says who speaks, `time` when.",
    )
    turn_splitter: Function = Field(
        default=None, description="Function from a transcript to (role, text) pairs, instead of a pattern."
    )
    role_key: str = Field(default="role", description="Metadata key that makes a document a turn and says its role.")
    session_key: str = Field(default="session_id", description="Metadata key of a document's session.")
    timestamp_key: str = Field(default="timestamp", description="Metadata key of a turn's time.")
    on_error: Literal["skip", "raise"] = Field(
        default="skip", description="What to do with a document that cannot be read: leave it out and log, or raise."
    )
    id_func: Function = Field(
        default=None, description="Function from index and document to a node id, instead of ours."
    )

    @field_validator("format")
    @classmethod
    def _known_format(cls, value: str) -> str:
        if value not in FORMATS:
            raise ValueError(f"unknown format {value!r}; known: {', '.join(FORMATS)}")
        return value

    @computed_field  # type: ignore[prop-decorator]
    @property
    def algorithm(self) -> str:
        """What cuts the episodes, as part of the cache key of an ingestion pipeline."""
        return ALGORITHM

    @classmethod
    def class_name(cls) -> str:
        """Name in serialised data."""
        return "TSIMNodeParser"

    @classmethod
    def from_defaults(
        cls,
        embed_model: Any = DEFAULT_EMBED_MODEL,
        config: TSIMConfig | dict[str, Any] | str | None = None,
        include_turns: bool = False,
        link: bool = False,
        turn_pattern: str | None = None,
        turn_splitter: TurnSplitter | None = None,
        include_metadata: bool = True,
        include_prev_next_rel: bool = True,
        callback_manager: CallbackManager | None = None,
        id_func: Callable[[int, BaseNode], str] | None = None,
        **settings: Any,
    ) -> TSIMNodeParser:
        """A parser with the usual settings; see the fields of the class."""
        return cls(
            embed_model=embed_model,
            config=config,
            include_turns=include_turns,
            link=link,
            turn_pattern=turn_pattern,
            turn_splitter=turn_splitter,
            include_metadata=include_metadata,
            include_prev_next_rel=include_prev_next_rel,
            callback_manager=callback_manager or CallbackManager([]),
            id_func=id_func,
            **settings,
        )

    def get_nodes_from_messages(
        self, messages: Sequence[ChatMessage], session_id: str | None = None, show_progress: bool = False
    ) -> list[BaseNode]:
        """Episode nodes of a chat.

        Args:
            messages: Its messages, oldest first.
            session_id: What to call it; part of the ids of its nodes.
            show_progress: Whether to show progress.

        Raises:
            InputError: If a message cannot be read.
        """
        conversation = messages_conversation(messages, session_id)
        conversations = [] if conversation is None else [conversation]
        return self._segmented(conversations, self._embedded(conversations, show_progress), show_progress)

    async def aget_nodes_from_messages(
        self, messages: Sequence[ChatMessage], session_id: str | None = None, show_progress: bool = False
    ) -> list[BaseNode]:
        """Async twin of `get_nodes_from_messages`."""
        conversation = messages_conversation(messages, session_id)
        return await self._asegmented([] if conversation is None else [conversation], show_progress)

    def _parse_nodes(self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any) -> list[BaseNode]:
        conversations = self._conversations(nodes)
        return self._segmented(conversations, self._embedded(conversations, show_progress), show_progress)

    async def _aparse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        return await self._asegmented(await asyncio.to_thread(self._conversations, nodes), show_progress)

    async def _asegmented(self, conversations: Sequence[Conversation], show_progress: bool) -> list[BaseNode]:
        texts = _texts(conversations, self.config)
        embedder = await aembed_texts(self.embed_model, texts, show_progress) if texts else None
        return await asyncio.to_thread(self._segmented, conversations, embedder, show_progress)

    def _postprocess_parsed_nodes(self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]) -> list[BaseNode]:
        return nodes  # spans, metadata and relations are right already; the base class would guess them anew

    def _conversations(self, documents: Sequence[BaseNode]) -> list[Conversation]:
        """The conversations of all documents, in order of their first one. Blank documents have none."""
        reading = Reading(
            self.format, self.turn_pattern, self.turn_splitter, self.role_key, self.session_key, self.timestamp_key
        )
        found: list[Conversation | str | None] = []
        sessions: dict[str | None, list[Utterance]] = {}
        for document in documents:
            try:
                if reading.is_turn(document):
                    session = reading.session(document)
                    if session not in sessions:
                        found.append(session)
                    sessions.setdefault(session, []).append(reading.turn(document))
                elif (conversation := reading.document(document)) is not None:
                    found.append(conversation)
            except InputError as error:
                self._left_out(error)
        whole = [c if isinstance(c, Conversation) else reading.turns(c, sessions[c]) for c in found]
        return [c for c in whole if any(u.turn.text.strip() for u in c.utterances)]

    def _left_out(self, error: InputError) -> None:
        if self.on_error == "raise":
            raise error
        logger.error("left out: %s", error)

    def _embedded(self, conversations: Sequence[Conversation], show_progress: bool) -> Embedder | None:
        texts = _texts(conversations, self.config)
        return embed_texts(self.embed_model, texts, show_progress) if texts else None

    def _segmented(
        self, conversations: Sequence[Conversation], embedder: Embedder | None, show_progress: bool
    ) -> list[BaseNode]:
        """Let the core cut the conversations, each as a thread of its own, and make nodes of what it finds."""
        if embedder is None:
            return []
        options = NodeOptions(self.include_metadata, self.include_prev_next_rel, self.include_turns, self.id_func)
        default = TSIMConfig.default()
        config = self.config.replace(  # nothing is recalled here, so no views are made
            linking=self.config.linking if self.link else None, views=default.views, ranking=default.ranking
        )
        nodes: list[BaseNode] = []
        ids: dict[str, int] = {}
        names: dict[str, int] = {}
        with EpisodicMemory(embedder=embedder, config=config) as memory:
            for conversation in get_tqdm_iterable(conversations, show_progress, "Parsing nodes"):
                identity = conversation.identity()
                seen = names[identity] = names.get(identity, -1) + 1
                thread = memory.thread(identity if not seen else digest(identity, str(seen)))
                try:
                    thread.extend(u.turn for u in conversation.utterances)
                except InputError as error:
                    self._left_out(error)
                    continue
                nodes += conversation_nodes(conversation, thread.segments(), options, ids)
        return nodes

    def __getstate__(self) -> dict[str, Any]:
        """The state for a worker process.

        Raises:
            TypeError: If a setting cannot be pickled; the base class would leave it out without a word.
        """
        state = super().__getstate__()
        lost = set(type(self).model_fields) - set(state["__dict__"]) - {"callback_manager"}
        if lost:
            raise TypeError(
                f"{', '.join(sorted(lost))} of TSIMNodeParser cannot be pickled for a worker process: use a function "
                "of a module instead of a lambda, and an embedding model that can be pickled"
            )
        return state


def _texts(conversations: Sequence[Conversation], config: TSIMConfig) -> list[str]:
    """What will be embedded, in one batch."""
    return [config.said(u.turn.text) for c in conversations for u in c.utterances if u.turn.text.strip()]
