"""A local server with OpenAI's embeddings endpoint over all-MiniLM-L6-v2, as many local model servers have it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from tsim_core import MiniLMEmbedder

MODEL = "all-MiniLM-L6-v2"
KEY = "local-key"


class Handler(BaseHTTPRequestHandler):
    embedder = MiniLMEmbedder()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") != f"Bearer {KEY}":
            self._answer(401, {"error": {"message": "Incorrect API key provided", "type": "invalid_request_error"}})
        elif self.path != "/v1/embeddings" or asked["model"] != MODEL:
            self._answer(404, {"error": {"message": f"The model {asked['model']} does not exist"}})
        else:
            self._answer(200, self._embeddings(asked))

    def _embeddings(self, asked: dict[str, Any]) -> dict[str, Any]:
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        rows = self.embedder.embed(texts).round(5)
        packed = asked.get("encoding_format") == "base64"
        vectors = [base64.b64encode(row.tobytes()).decode() if packed else row.tolist() for row in rows]
        words = sum(len(text.split()) for text in texts)
        return {
            "object": "list",
            "model": MODEL,
            "data": [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)],
            "usage": {"prompt_tokens": words, "total_tokens": words},
        }

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving() -> Iterator[str]:
    """A server on a free port of this machine; gives its base URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()
