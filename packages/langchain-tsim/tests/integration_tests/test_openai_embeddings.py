"""OpenAI-compatible embedding endpoints: against a live local server, and from a cassette recorded from it.

Record anew: ``pytest packages/langchain-tsim/tests/integration_tests/test_openai_embeddings.py --record-mode=rewrite``.
"""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from langchain_openai import OpenAIEmbeddings
from langchain_tsim import TSIMMemory, TSIMRetriever, open_memory
from tsim_core import EmbedderError, MiniLMEmbedder

from .openai_server import KEY, MODEL, serving

CASSETTES = Path(__file__).parent / "cassettes" / "test_openai_embeddings"
CAT = "The cat sleeps in the red basket by the window."
BOAT = "Our boat needs new sails before the summer regatta."


def without_machine(request: Any) -> Any:
    """What is recorded of a request names neither the port nor the client's machine."""
    request.uri = "http://embeddings.test/v1/embeddings"
    request.headers = {"content-type": "application/json"}
    return request


@pytest.fixture(scope="module")
def vcr_config() -> dict[str, Any]:
    return {"before_record_request": without_machine, "match_on": ["method", "path", "body"]}


@pytest.fixture(scope="module")
def live() -> Iterator[str]:
    with serving() as url:
        yield url


@pytest.fixture
def url(record_mode: str, request: pytest.FixtureRequest) -> str:
    """The live server when a cassette is recorded; an address where nothing listens when it is replayed."""
    return "http://127.0.0.1:9/v1" if record_mode == "none" else request.getfixturevalue("live")


def embeddings(url: str, key: str = KEY, model: str = MODEL) -> OpenAIEmbeddings:
    return OpenAIEmbeddings(model=model, base_url=url, api_key=key, max_retries=0, check_embedding_ctx_length=False)  # type: ignore[arg-type]


def remember(url: str) -> None:
    """What both tests do: two topics in, the right one out, and not the other."""
    with open_memory(":memory:", embedder=embeddings(url)) as memory:
        assert memory.embedder.name == f"langchain:OpenAIEmbeddings:{MODEL}"
        assert memory.embedder.dimension == 384
        memory.thread("alice", "pets").add("user", CAT)
        memory.thread("alice", "sea").add("user", BOAT)
        (found,) = TSIMRetriever(memory=memory, scope=("alice", "x"), recall_scope="alice", k=1).invoke("my kitty naps")
        assert found.page_content == f"user: {CAT}"
        memory_ = TSIMMemory(memory=memory, scope=("alice", "x"), recall_scope="alice", k=1)
        text = memory_.load_memory_variables({"input": "sailing race"})["history"]
        assert BOAT in text
        assert CAT not in text


def test_live(live: str) -> None:
    remember(live)


@pytest.mark.vcr
def test_replayed(url: str) -> None:
    remember(url)


@pytest.mark.vcr
async def test_replayed_async(url: str) -> None:
    with open_memory(":memory:", embedder=embeddings(url)) as memory:
        await memory.thread("a").aadd("user", CAT)
        (found,) = await TSIMRetriever(memory=memory, scope="a").ainvoke("my kitty naps")
        assert found.page_content == f"user: {CAT}"


@pytest.mark.parametrize("name", ["test_replayed", "test_replayed_async"])
def test_the_cassettes_hold_what_the_server_answers(name: str, live: str) -> None:
    recorded = yaml.safe_load((CASSETTES / f"{name}.yaml").read_text())["interactions"]
    assert recorded
    for entry in recorded:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
        request = urllib.request.Request(f"{live}/embeddings", entry["request"]["body"].encode(), headers)
        with urllib.request.urlopen(request) as answer:
            now = vectors(json.load(answer))
        assert now == pytest.approx(vectors(json.loads(entry["response"]["body"]["string"])), abs=1e-3)


def vectors(answer: dict[str, Any]) -> Any:
    rows = [row["embedding"] for row in answer["data"]]
    return np.array([np.frombuffer(base64.b64decode(r), np.float32) if isinstance(r, str) else r for r in rows])


def test_vectors_arrive_unchanged(live: str) -> None:
    with open_memory(":memory:", embedder=embeddings(live)) as memory:
        assert memory.embed([CAT]) == pytest.approx(MiniLMEmbedder().embed([CAT]), abs=1e-4)


@pytest.mark.parametrize(
    ("key", "model", "says"), [("wrong", MODEL, "Incorrect API key"), (KEY, "other", "does not exist")]
)
def test_a_server_that_refuses(live: str, key: str, model: str, says: str) -> None:
    with pytest.raises(EmbedderError, match=says):
        open_memory(":memory:", embedder=embeddings(live, key, model))
