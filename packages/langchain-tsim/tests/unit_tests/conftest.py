"""Unit tests have no network."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import pytest_socket


@pytest.fixture(autouse=True)
def _no_network() -> Iterator[None]:
    pytest_socket.disable_socket(allow_unix_socket=True)  # an event loop has a pair of them
    yield
    pytest_socket.enable_socket()
