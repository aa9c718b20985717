"""RetrievalQA over conversations: TSIMRetriever gives whole episodes where a vector store gives chunks.

Two conversations of one user are remembered, and one of another. Prints the answer and the episodes that it rests on,
with their score and what each view adds to it: the user's balcony, and nothing of the other user's.

    python examples/langchain_retrieval_qa.py
    TSIM_MODEL=anthropic:claude-haiku-4-5 python examples/langchain_retrieval_qa.py
"""

from __future__ import annotations

import warnings

from langchain_classic.chains import RetrievalQA
from langchain_core._api import LangChainDeprecationWarning
from langchain_model import chat_model
from langchain_tsim import TSIMRetriever
from tsim_core import EpisodicMemory, Turn

warnings.filterwarnings("ignore", category=LangChainDeprecationWarning)  # LangChain wants agents instead of this chain

BALCONY = [
    Turn("user", "I want to grow tomatoes on the balcony. It faces north, so there is sun only before nine."),
    Turn("assistant", "Then take cherry tomatoes in large pots, right at the railing."),
    Turn("user", "Good. And nothing that needs the cellar: I gave up my storage room there."),
]
TAXES = [Turn("user", "When is the tax form due?"), Turn("assistant", "At the end of July.")]
OTHERS = [Turn("user", "My balcony faces south and gets sun all day, tomatoes love it.")]


def main() -> None:
    """Run the example."""
    with EpisodicMemory() as memory:
        memory.thread("alice", "garden").extend(BALCONY)
        memory.thread("alice", "taxes").extend(TAXES)
        memory.thread("bob", "garden").extend(OTHERS)

        chain = RetrievalQA.from_chain_type(
            chat_model("Herbs that bear shade, such as mint and chives: your balcony faces north."),
            retriever=TSIMRetriever(memory=memory, scope=("alice", "now"), recall_scope="alice", k=1),
            return_source_documents=True,
        )
        out = chain.invoke({"query": "What else can I grow on the balcony?"})
        print("ANSWER\n" + out["result"])
        for document in out["source_documents"]:
            print(f"\nEPISODE {document.id}, score {document.metadata['score']:.2f}")
            for view, value in document.metadata["evidence"].items():
                print(f"  {view}: {value:.2f}")
            print(document.page_content)


if __name__ == "__main__":
    main()
