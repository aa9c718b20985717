"""What the TSIM parts for LlamaIndex share: the embedder adapter and lossless message conversion."""

from llama_index.utils.tsim._version import __version__
from llama_index.utils.tsim.embedding import EmbedModel, LlamaIndexEmbedder
from llama_index.utils.tsim.messages import message_to_turn, turn_to_message

__all__ = ["EmbedModel", "LlamaIndexEmbedder", "__version__", "message_to_turn", "turn_to_message"]
