"""Python values as JSON data and back: what a message carries beside its text.

LangChain's documents and messages come back as themselves. Other pydantic models, dataclasses and enums become their
data, as in LangChain's own serialisation: no class is ever looked up by a stored name.
"""

from __future__ import annotations

import base64
import dataclasses
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import numpy as np
from langchain_core.documents import Document
from pydantic import BaseModel

from langchain_tsim.errors import MessageError

TAG = "$type"  # marks a JSON object that stands for something else

# Exact types, so that a datetime is no date.
_ENCODERS: dict[type, tuple[str, Callable[[Any], Any]]] = {
    bytes: ("bytes", lambda value: base64.b64encode(value).decode()),
    tuple: ("tuple", lambda value: [encode(item) for item in value]),
    set: ("set", lambda value: [encode(item) for item in value]),
    frozenset: ("frozenset", lambda value: [encode(item) for item in value]),
    datetime: ("datetime", datetime.isoformat),
    date: ("date", date.isoformat),
    time: ("time", time.isoformat),
    timedelta: ("timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    UUID: ("uuid", str),
    Decimal: ("decimal", str),
    Document: ("document", lambda value: {n: encode(v) for n, v in value if n != "type"}),
}
_DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "bytes": base64.b64decode,
    "tuple": lambda value: tuple(decode(item) for item in value),
    "set": lambda value: {decode(item) for item in value},
    "frozenset": lambda value: frozenset(decode(item) for item in value),
    "dict": lambda value: {decode(key): decode(item) for key, item in value},
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda value: timedelta(*value),
    "uuid": UUID,
    "decimal": Decimal,
    "document": lambda value: Document(**{n: decode(v) for n, v in value.items()}),
}


def encode(value: Any) -> Any:
    """A value as JSON data.

    Raises:
        MessageError: If it is of a type that cannot be stored.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return encode(value.value)
    if isinstance(value, str):
        return str.__str__(value)  # subclasses, such as LangChain's TextAccessor, as plain text
    if isinstance(value, np.generic):
        return encode(value.item())
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {TAG: "float", "value": repr(float(value))}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, np.ndarray):
        return encode(value.tolist())
    if isinstance(value, Mapping):
        if TAG not in value and all(type(key) is str for key in value):
            return {key: encode(item) for key, item in value.items()}
        return {TAG: "dict", "value": [[encode(key), encode(item)] for key, item in value.items()]}
    if (known := _ENCODERS.get(type(value))) is not None:
        name, encoder = known
        return {TAG: name, "value": encoder(value)}
    return _encode_object(value)


def _encode_object(value: Any) -> Any:
    from langchain_core.messages import BaseMessage

    if isinstance(value, BaseMessage):
        from langchain_tsim.messages import message_data

        return {TAG: "message", "value": message_data(value)}
    if isinstance(value, BaseModel):
        return {name: encode(item) for name, item in value}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    raise MessageError(
        f"a {type(value).__module__}.{type(value).__qualname__} cannot be stored; use JSON data, a LangChain "
        "document or message, a pydantic model or a dataclass"
    )


def decode(value: Any) -> Any:
    """What `encode` was given.

    Raises:
        MessageError: If the data is not what `encode` returns.
    """
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {key: decode(item) for key, item in value.items()}
    if value[TAG] == "message":
        from langchain_tsim.messages import message_from_data

        return message_from_data(value["value"])
    if (decoder := _DECODERS.get(value[TAG])) is None:
        raise MessageError(
            f"stored data of the unknown type {value[TAG]!r}; a newer langchain-tsim may have written it"
        )
    return decoder(value["value"])
