"""Memories for LlamaIndex that keep whole episodes."""

from llama_index.memory.tsim.base import TSIMMemory
from llama_index.memory.tsim.block import TSIMMemoryBlock

__all__ = ["TSIMMemory", "TSIMMemoryBlock"]
