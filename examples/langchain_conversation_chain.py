"""An old ConversationChain that remembers other sessions: one line is new, ``memory=TSIMMemory(...)``.

On Monday a user speaks of her budget and of her cat. On Friday a new chain, in a new session, is asked for a GPU. It
prints what was put into the prompt for that question, which holds the rule of Monday with its day, and the answer.

    python examples/langchain_conversation_chain.py
    TSIM_MODEL=openai:gpt-5-mini python examples/langchain_conversation_chain.py
"""

from __future__ import annotations

import warnings

from langchain_classic.chains import ConversationChain
from langchain_core._api import LangChainDeprecationWarning
from langchain_model import chat_model
from langchain_tsim import TSIMMemory
from tsim_core import EpisodicMemory

warnings.filterwarnings("ignore", category=LangChainDeprecationWarning)  # LangChain wants agents instead of this chain


def main() -> None:
    """Run the example."""
    model = chat_model(
        "Noted: a single consumer GPU, never more than 400 euros.",
        "A red basket sounds cosy.",
        "Take a used RTX 3060: it is one consumer GPU and stays below your 400 euros.",
    )
    with EpisodicMemory() as memory:  # EpisodicMemory("memory.db") to keep it
        monday = ConversationChain(llm=model, memory=TSIMMemory(memory=memory, scope=("alice", "monday")))
        monday.invoke(
            {"input": "For my projects I use a single consumer GPU, and I never pay more than 400 euros for it."}
        )
        monday.invoke({"input": "By the way, my cat sleeps in a red basket now."})

        remembering = TSIMMemory(memory=memory, scope=("alice", "friday"), recall_scope="alice", recent_turns=4)
        friday = ConversationChain(llm=model, memory=remembering)
        out = friday.invoke({"input": "Which GPU should I buy for the new project?"})
        print("IN THE PROMPT\n" + out["history"])
        print("\nANSWER\n" + out["response"])


if __name__ == "__main__":
    main()
