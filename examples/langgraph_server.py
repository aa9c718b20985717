"""The support agent for the LangGraph CLI, which brings the checkpointer and the ids of threads and users.

The memory is opened as the module is imported, once for all runs: a server runs graphs in its event loop, where nothing
may block, and memory nodes do their work in worker threads. TSIM_STORE names the file to keep the memory in.
A run says whose it is, {"configurable": {"user_id": "ann"}}, unless the server knows its users itself.

    pip install "langgraph-cli[inmem]" langgraph-tsim langchain
    langgraph dev --config examples/langgraph.json
    TSIM_STORE=support.db TSIM_MODEL=openai:gpt-5-mini langgraph dev --config examples/langgraph.json
"""

from __future__ import annotations

import os

from langgraph_support_agent import build
from tsim_core import EpisodicMemory

REPLIES = ["This is the scripted model: set TSIM_MODEL for a real one."] * 100

graph = build(EpisodicMemory(os.environ.get("TSIM_STORE", ":memory:")), *REPLIES).compile()
