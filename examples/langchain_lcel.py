"""An LCEL chain with memory: what bears on the question goes into the prompt, and the exchange is stored after it.

The user is named by the inputs, so one chain serves all of them. Prints, for two users, the prompt's system message and
the answer: each is given their own allergy, and none the other's.

    python examples/langchain_lcel.py
    TSIM_MODEL=ollama:llama3.2 python examples/langchain_lcel.py
"""

from __future__ import annotations

from typing import Any

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_model import chat_model
from langchain_tsim import TSIMMemory
from tsim_core import EpisodicMemory

PROMPT = ChatPromptTemplate.from_messages([("system", "Be brief.\n\n{history}"), ("human", "{input}")])


def main() -> None:
    """Run the example."""
    model = chat_model("Noted.", "Noted.", "Pasta with tomatoes.", "Rice with vegetables.")
    with EpisodicMemory() as store:
        memory = TSIMMemory(memory=store, scope="{user}")

        def load(inputs: dict[str, Any]) -> str:
            return str(memory.load_memory_variables(inputs)["history"])

        def save(state: dict[str, Any]) -> dict[str, Any]:
            memory.save_context({"input": state["input"], "user": state["user"]}, {"output": state["answer"]})
            return state

        chain = (
            RunnablePassthrough.assign(history=load)
            | RunnablePassthrough.assign(prompt=PROMPT)
            | RunnablePassthrough.assign(answer=(lambda state: state["prompt"]) | model | StrOutputParser())
            | RunnableLambda(save)
        )
        chain.invoke({"user": "alice", "input": "I am allergic to nuts."})
        chain.invoke({"user": "bob", "input": "I cannot eat gluten, I am allergic to it."})
        for user in ("alice", "bob"):
            out = chain.invoke({"user": user, "input": "What shall I cook, given my allergy?"})
            print(f"{user.upper()}\n{out['prompt'].messages[0].content}\n-> {out['answer']}\n")


if __name__ == "__main__":
    main()
