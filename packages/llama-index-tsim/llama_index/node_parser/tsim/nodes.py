"""Episodes as LlamaIndex nodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.node_parser.tsim.conversations import Conversation, Utterance, digest
from llama_index.utils.tsim.messages import speaker, turn_text
from tsim_core import Segment, Turn
from tsim_core.readers import parse_time

GAP = "\n...\n"
"""Stands between the runs of an episode that the talk left and came back to."""

TURNS = "turns"
_HIDDEN = ("episode_id", "turn_start", "turn_end", "speakers", "end_time", TURNS)
"""Bookkeeping that neither the embedding model nor the language model needs to see."""


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """How nodes are made: the settings of the parser that matter here."""

    include_metadata: bool
    include_prev_next_rel: bool
    include_turns: bool
    id_func: Callable[..., str] | None


def conversation_nodes(
    conversation: Conversation,
    segments: Sequence[Segment],
    options: NodeOptions,
    ids: dict[str, int],
) -> list[BaseNode]:
    """The nodes of a conversation: its episodes in order, then, where wanted, their turns.

    Args:
        conversation: The conversation.
        segments: Its segments; positions count its utterances. Those with one episode make one node.
        options: How nodes are made.
        ids: How often each node id was given out so far; taken further here.
    """
    runs: dict[str, list[Segment]] = {}
    for segment in segments:
        runs.setdefault(segment.episode, []).append(segment)
    identity = conversation.identity()
    draft = _Draft(conversation, options, identity, ids)
    episodes: list[TextNode] = []
    turns: list[TextNode] = []
    for segments_of_one in runs.values():
        node = draft.episode(segments_of_one)
        if node is None:
            continue
        episodes.append(node)
        if options.include_turns:
            turns += draft.turns(node, segments_of_one)
    _link(episodes, turns, options)
    return [*episodes, *turns]


class _Draft:
    """Makes the nodes of one conversation, not linked yet."""

    def __init__(self, conversation: Conversation, options: NodeOptions, identity: str, ids: dict[str, int]) -> None:
        self.conversation = conversation
        self.options = options
        self.identity = identity
        self.ids = ids
        self.count = 0
        # as_related_node_info hashes the whole document: once for each is enough
        self.sources: dict[str, RelatedNodeInfo] = {}

    def episode(self, segments: Sequence[Segment]) -> TextNode | None:
        """One node for the segments of an episode; None when nothing was said in it."""
        pieces: list[str] = []
        turns: list[dict[str, Any]] = []
        at = 0
        said: list[Utterance] = []
        for segment in segments:
            run = [u for u in self.conversation.utterances[segment.start : segment.end] if u.turn.text.strip()]
            if not run:
                continue
            if pieces:
                pieces.append(GAP)
                at += len(GAP)
            text, places = self._text(run)
            turns += [_turn_record(u, at + start) for u, start in zip(run, places, strict=True)]
            pieces.append(text)
            at += len(text)
            said += run
        if not said:
            return None
        times = [u.turn.timestamp for u in said if u.turn.timestamp is not None]
        own = {
            "episode_id": segments[0].episode,
            "turn_start": segments[0].start,
            "turn_end": segments[-1].end,
            "speakers": ", ".join(dict.fromkeys(speaker(u.turn) for u in said)),
            **({"start_time": min(times).isoformat(), "end_time": max(times).isoformat()} if times else {}),
            TURNS: json.dumps(turns, ensure_ascii=False),
        }
        span = said[0].start, max(u.end for u in said)
        return self._node("".join(pieces), span, "episode", segments[0].start, own, self.conversation.source)

    def _text(self, run: Sequence[Utterance]) -> tuple[str, list[int]]:
        """The text of a run, and where in it each turn's words begin."""
        if self.conversation.verbatim:
            start = run[0].start
            return self.conversation.text[start : run[-1].end], [u.text_start - start for u in run]
        lines = [turn_text(u.turn) for u in run]
        places, at = [], 0
        for u, line in zip(run, lines, strict=True):
            places.append(at + len(line) - len(u.turn.text))
            at += len(line) + 1
        return "\n".join(lines), places

    def turns(self, episode: TextNode, segments: Sequence[Segment]) -> list[TextNode]:
        """One node for each turn of an episode in which something was said."""
        nodes = []
        for segment in segments:
            for position in range(segment.start, segment.end):
                u = self.conversation.utterances[position]
                if not u.turn.text.strip():
                    continue
                text, places = self._text([u])
                own = {
                    "episode_id": segment.episode,
                    "turn_start": position,
                    "turn_end": position + 1,
                    "speakers": speaker(u.turn),
                    **({"start_time": u.turn.timestamp.isoformat()} if u.turn.timestamp else {}),
                    TURNS: json.dumps([_turn_record(u, places[0])], ensure_ascii=False),
                }
                node = self._node(text, (u.start, u.end), "turn", position, own, u.source or self.conversation.source)
                node.relationships[NodeRelationship.PARENT] = RelatedNodeInfo(node_id=episode.node_id)
                nodes.append(node)
        return nodes

    def _node(
        self, text: str, span: tuple[int, int], kind: str, position: int, own: dict[str, Any], source: BaseNode
    ) -> TextNode:
        if self.options.id_func is None:
            id_ = digest(self.identity, kind, str(position), text)
            seen = self.ids.get(id_, 0)  # the same conversation twice in one batch
            self.ids[id_] = seen + 1
            id_ = digest(id_, str(seen)) if seen else id_
        else:
            id_ = self.options.id_func(self.count, source)
        self.count += 1
        if source.node_id not in self.sources:
            self.sources[source.node_id] = source.source_node or source.as_related_node_info()
        session = self.conversation.session
        metadata = {
            **(self.conversation.metadata if self.options.include_metadata else {}),
            **({} if session is None else {"session_id": session}),
            **own,
        }
        optional = {
            name: getattr(source, name)
            for name in ("metadata_template", "metadata_separator", "text_template")
            if hasattr(source, name)
        }
        return TextNode(
            id_=id_,
            text=text,
            metadata=metadata,
            start_char_idx=span[0],
            end_char_idx=span[1],
            excluded_embed_metadata_keys=[*source.excluded_embed_metadata_keys, *_HIDDEN, "session_id", "start_time"],
            excluded_llm_metadata_keys=[*source.excluded_llm_metadata_keys, *_HIDDEN],
            relationships={NodeRelationship.SOURCE: self.sources[source.node_id]},
            **optional,
        )


def _link(episodes: Sequence[TextNode], turns: Sequence[TextNode], options: NodeOptions) -> None:
    """Tell the nodes of each other, now that their texts and metadata, hence their hashes, are final."""
    info = {node.node_id: node.as_related_node_info() for node in (*episodes, *turns)}
    children: dict[str, list[RelatedNodeInfo]] = {}
    for turn in turns:
        parent = turn.parent_node
        assert parent is not None
        children.setdefault(parent.node_id, []).append(info[turn.node_id])
        turn.relationships[NodeRelationship.PARENT] = info[parent.node_id]
    for episode in episodes:
        if episode.node_id in children:
            episode.relationships[NodeRelationship.CHILD] = children[episode.node_id]
    if options.include_prev_next_rel:
        for level in (episodes, sorted(turns, key=lambda node: node.metadata["turn_start"])):
            for node, following in pairwise(level):
                node.relationships[NodeRelationship.NEXT] = info[following.node_id]
                following.relationships[NodeRelationship.PREVIOUS] = info[node.node_id]


# turns in a node's metadata


def _turn_record(utterance: Utterance, start: int) -> dict[str, Any]:
    turn = utterance.turn
    record: dict[str, Any] = {"role": turn.role, "start": start, "end": start + len(turn.text)}
    if turn.timestamp is not None:
        record["timestamp"] = turn.timestamp.isoformat()
    if turn.metadata and speaker(turn) != turn.role:
        record["name"] = speaker(turn)
    return record


def node_turns(node: BaseNode) -> list[Turn]:
    """The turns of a node that `TSIMNodeParser` made; any other node is one user turn."""
    text = node.get_content()
    if TURNS not in node.metadata:
        return [Turn("user", text)]
    return [
        Turn(
            record["role"],
            text[record["start"] : record["end"]],
            None,
            parse_time(record.get("timestamp"), f"node {node.node_id!r}"),
            {"name": record["name"]} if "name" in record else None,
        )
        for record in json.loads(node.metadata[TURNS])
    ]
