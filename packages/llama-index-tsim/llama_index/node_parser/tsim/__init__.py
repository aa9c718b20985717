"""An episode node parser for LlamaIndex."""

from llama_index.node_parser.tsim.base import TSIMNodeParser
from llama_index.node_parser.tsim.conversations import TurnSplitter

__all__ = ["TSIMNodeParser", "TurnSplitter"]
