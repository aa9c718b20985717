"""The core's configuration as a field of LlamaIndex components, and stores by location."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib.metadata import version
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, PlainSerializer, model_validator
from tsim_core import TSIMConfig

_PRESETS = {"default": TSIMConfig.default, "paper": TSIMConfig.paper, "longmemeval": TSIMConfig.longmemeval}


def load_config(value: TSIMConfig | Mapping[str, Any] | str | None) -> TSIMConfig:
    """A configuration from a preset's name, from `TSIMConfig.to_dict` data, or as it is; the default for None.

    Raises:
        ValueError: If it is none of these (a `ConfigError` where a setting is wrong).
    """
    if value is None:
        return TSIMConfig.default()
    if isinstance(value, TSIMConfig):
        return value
    if isinstance(value, str):
        if value not in _PRESETS:
            raise ValueError(f"unknown preset {value!r}; known: {', '.join(_PRESETS)}")
        return _PRESETS[value]()
    if isinstance(value, Mapping):
        return TSIMConfig.from_dict(value)
    raise ValueError(f"config is {type(value).__name__}; expected a TSIMConfig, its to_dict() or a preset's name")


def load_store_config(value: TSIMConfig | Mapping[str, Any] | str | None) -> TSIMConfig | None:
    """As `load_config`, but None stays: it means what the store was written with."""
    return None if value is None else load_config(value)


def dump_config(config: TSIMConfig | None) -> dict[str, Any] | None:
    """A configuration as JSON data."""
    return None if config is None else config.to_dict()


ConfigField = Annotated[Any, BeforeValidator(load_config), PlainSerializer(dump_config)]
"""A `TSIMConfig` as a serialised field of a component."""

StoreConfigField = Annotated[Any, BeforeValidator(load_store_config), PlainSerializer(dump_config)]
"""A `TSIMConfig`, or None for that of the store, as a serialised field of a component."""


class KnownSettings(BaseModel):
    """A component whose settings are its fields: a setting that is none is an error rather than ignored."""

    @model_validator(mode="before")
    @classmethod
    def _known(cls, data: Any) -> Any:
        """Refuse settings that the component does not have.

        Raises:
            ValueError: If there is one, with the setting that was probably meant.
        """
        if isinstance(data, Mapping):
            known = [*cls.model_fields, *(f.alias for f in cls.model_fields.values() if f.alias)]
            derived = {"class_name", *cls.model_computed_fields}  # what `to_dict` adds
            for name in data:
                if name not in known and name not in derived:
                    near = get_close_matches(str(name), known, 1)
                    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"
                    raise ValueError(f"{cls.__name__} has no setting {name!r}; {hint}")
        return data


ALGORITHM = f"tsim-core {version('tsim-core')}"
"""What cut the episodes: cached nodes of another version are not taken for this one's."""
