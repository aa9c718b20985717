"""Chats into episode nodes with an IngestionPipeline, and back out with a retriever.

Prints the episodes of a chat with the part of the text they stand in, what the second run of the pipeline takes from
its cache, and the episode that answers a question.

    python examples/llamaindex_ingest.py

No language model is needed.
"""

from __future__ import annotations

from llama_index.core import Document
from llama_index.core.ingestion import IngestionPipeline
from llama_index.node_parser.tsim import TSIMNodeParser
from llama_index.retrievers.tsim import TSIMRetriever

CHAT = """\
User: New projects run on a single consumer GPU, an RTX 4090. That is the rule from now on.
Assistant: Understood: one RTX 4090 for each new project, and no cluster jobs.
User: Right. Only old projects keep their A100 nodes.
Assistant: Noted, the A100 nodes are for old projects only.
User: Something else: my sourdough is dense. What am I doing wrong?
Assistant: Most likely it proofs too short. Let the dough double, about five hours at 24 degrees.
User: And which flour should I bake it with?
Assistant: A strong bread flour, with a fifth of rye for the taste.
User: We also fly to Lisbon in May. Which quarter should we stay in?
Assistant: Alfama is pretty but steep; Graça has the views and is quieter at night.
User: Is the tram pass worth it in Lisbon?
Assistant: Yes, the day pass covers trams, funiculars and the metro.
"""


def main() -> None:
    document = Document(text=CHAT, id_="monday.txt", metadata={"session_id": "monday"})
    parser = TSIMNodeParser.from_defaults()
    pipeline = IngestionPipeline(transformations=[parser])

    nodes = pipeline.run(documents=[document])
    for node in nodes:
        first = node.text.splitlines()[0]
        print(f"{node.start_char_idx:4}-{node.end_char_idx:<4} {first}")
        assert CHAT[node.start_char_idx : node.end_char_idx] == node.text

    again = pipeline.run(documents=[document])
    print(f"\nsecond run: {len(again)} nodes from the cache, the same: {again == nodes}")

    retriever = TSIMRetriever.from_nodes(nodes, similarity_top_k=1)
    question = "Which GPU may my new project use?"
    print(f"\n{question}\n{retriever.retrieve(question)[0].text}")


if __name__ == "__main__":
    main()
