"""A small OpenAI-compatible server for the tests: it answers, mumbles or fails, by the name of the model.

``tiny-chooser`` takes the option that shares most words with the recalled context; ``tiny-mumbler`` writes prose
whatever format is asked for; ``tiny-broken`` answers with status 500.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            return self.reply(404, {"error": {"message": f"no {self.path}"}})
        if body["model"] == "tiny-broken":
            return self.reply(500, {"error": {"message": "out of order"}})
        prompt = body["messages"][-1]["content"]
        if body["model"] == "tiny-mumbler":
            return self.reply(200, completion(body["model"], "It depends, I would say."))
        if body.get("response_format", {}).get("type") == "json_schema":
            return self.reply(200, completion(body["model"], json.dumps(choose(prompt))))
        return self.reply(200, completion(body["model"], f"About: {prompt[:40]}"))

    def reply(self, status: int, document: object) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet."""


def choose(prompt: str) -> dict[str, str]:
    context, _, question = prompt.partition("\n---\n")
    heard = re.findall(r"\w+", context.lower())
    options = re.findall(r"^([ABCD])\. (.*)$", question, re.MULTILINE)
    # The later word counts more: an update supersedes what it updates.
    score = {
        letter: max((heard[::-1].index(word) * -1 for word in option.lower().split() if word in heard), default=-9999)
        for letter, option in options
    }
    letter = max(score, key=lambda key: score[key])
    return {"answer": letter, "rationale": f"The conversation ends on option {letter}."}


def completion(model: str, content: str) -> dict[str, object]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1790000000,
        "model": model,
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content, "refusal": None}}
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


@contextmanager
def serving(port: int = 0) -> Iterator[str]:
    """Run the server on this machine; yields its base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
