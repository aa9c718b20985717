"""Scenario families: the hand-written YAML that records are drawn from. FAMILIES.md describes the format.

``python -m scale_qa.families FILE...`` checks family files.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from scale_qa.errors import FamilyError
from scale_qa.records import DOMAINS, LANGUAGES, OVERLAPS, STRESS_CUES

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(\w+)(?:\|(upper|lower|cap))?\}|[{}]")
_REACTION = re.compile(r"\[([^\[\]]+)\]\s*")
_KEYS = (
    *("id", "topic", "language", "stress", "slots", "cases", "turns", "queries", "answer", "wrong"),
    "reasoning",
)
_OPTIONAL = ("slots", "cases", "about")

_DATA = Path(str(resources.files("scale_qa") / "data"))
_MARKS = ("evidence", "optional")


class _Loader(yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader):  # type: ignore[misc]
    """Text, lists and mappings only: 1.50 stays "1.50", 12:30 is no number. A key twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        twice = [key for key in keys if keys.count(key) > 1]
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice[0]!r} comes twice", node.start_mark)
        return dict(super().construct_mapping(node, deep))


@dataclass(frozen=True, slots=True)
class FamilyTurn:
    """One turn of a family.

    Attributes:
        role: Who speaks.
        wordings: What may be said.
        evidence: Whether the answer needs it.
        optional: Whether a record may leave out this turn and the reply to it.
    """

    role: str
    wordings: tuple[str, ...]
    evidence: bool
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Family:
    """One hand-written scenario with slots and paraphrases.

    Attributes:
        id: Unique, kebab-case.
        topic: Domain.
        language: ISO 639-1 code.
        stress: Stress cues that every record of it carries.
        slots: Values of each independent slot.
        cases: Values of the co-varying slots, one mapping a case.
        turns: The dialogue.
        queries: Wordings for each kind of overlap.
        about: What an indirect query adds: the matter, in words that the dialogue does not use; empty for nothing.
        answer: Wordings of the right option.
        wrong: Three lists of wordings.
        reasoning: Which turns decide and how.
        path: File it came from.
    """

    id: str
    topic: str
    language: str
    stress: tuple[str, ...]
    slots: Mapping[str, tuple[str, ...]]
    cases: tuple[Mapping[str, str], ...]
    turns: tuple[FamilyTurn, ...]
    queries: Mapping[str, tuple[str, ...]]
    about: str
    answer: tuple[str, ...]
    wrong: tuple[tuple[str, ...], ...]
    reasoning: str
    path: Path

    @property
    def evidence(self) -> tuple[int, ...]:
        """Positions of the evidence turns."""
        return tuple(i for i, turn in enumerate(self.turns) if turn.evidence)

    @property
    def asides(self) -> tuple[tuple[int, ...], ...]:
        """Runs of optional exchanges that follow one another, each as the positions of its user turns."""
        runs: list[tuple[int, ...]] = []
        for i, turn in enumerate(self.turns):
            if turn.optional:
                joins = bool(runs) and runs[-1][-1] == i - 2
                runs[-1:] = [(*runs[-1], i)] if joins else [*runs[-1:], (i,)]
        return tuple(runs)


@cache
def fields(template: str) -> frozenset[str]:
    """Names of the slots that ``template`` uses."""
    return frozenset(match[1] for match in _PLACEHOLDER.finditer(template) if match[1])


def render(template: str, values: Mapping[str, str]) -> str:
    """Fill the slots of ``template``.

    Raises:
        FamilyError: If a slot is not in ``values`` or a brace stands alone.
    """

    def fill(match: re.Match[str]) -> str:
        name, case = match[1], match[2]
        if name is None:
            if len(match[0]) == 1:
                raise FamilyError(f"a lone {match[0]!r} in {template[:50]!r}; write it twice to mean itself")
            return match[0][0]
        if name not in values:
            raise FamilyError(f"slot {{{name}}} is not defined, in {template[:50]!r}")
        value = values[name]
        if case == "cap":
            return value[:1].upper() + value[1:]
        return value.upper() if case == "upper" else value.lower() if case == "lower" else value

    return _PLACEHOLDER.sub(fill, template)


@cache
def reacting(template: str, *, to_reply: bool) -> str:
    """What is said of ``[Sent off.] By the way``: the bracket only where the turn before it was said too."""
    reaction = _REACTION.match(template)
    if reaction is None:
        return template
    rest = template[reaction.end() :]
    if to_reply:
        return f"{reaction[1]} {rest}"
    return rest[:1].upper() + rest[1:] if reaction[1][:1].isupper() else rest


def load_family(path: Path) -> Family:
    """Read one family file.

    Raises:
        FamilyError: If it is not YAML or not of the format; names the file and the key.
    """
    data = load_yaml(path)
    try:
        return _family(data, path)
    except FamilyError as error:
        raise FamilyError(f"{path}: {error}") from error


def load_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping in which every scalar is text.

    Raises:
        FamilyError: If it is no YAML, no mapping, or a key comes twice.
    """
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise FamilyError(f"{path}: not readable as YAML: {error}") from error
    if not isinstance(data, dict):
        raise FamilyError(f"{path}: expected a mapping from keys to values")
    return data


def shipped_families() -> list[Family]:
    """Every family of the package, by id.

    Raises:
        FamilyError: If a file is malformed or an id comes twice.
    """
    families: dict[str, Family] = {}
    for path in sorted((_DATA / "families").glob("*/*.yaml")):
        family = load_family(path)
        if family.id in families:
            raise FamilyError(f"{path}: id {family.id!r} is already used by {families[family.id].path}")
        families[family.id] = family
    return [families[key] for key in sorted(families)]


def _family(data: dict[str, Any], path: Path) -> Family:
    missing = [key for key in _KEYS if key not in data and key not in _OPTIONAL]
    unknown = [key for key in data if key not in (*_KEYS, *_OPTIONAL)]
    if missing or unknown:
        raise FamilyError(f"missing keys: {missing or 'none'}; unknown keys: {unknown or 'none'}")
    queries = data["queries"]
    if not isinstance(queries, dict) or set(queries) != set(OVERLAPS):
        raise FamilyError(f"queries: expected exactly the keys {', '.join(OVERLAPS)}")
    wrong = data["wrong"]
    if not isinstance(wrong, list) or len(wrong) != 3:
        raise FamilyError("wrong: expected exactly three lists of wordings")
    family = Family(
        id=_scalar(data["id"], "id"),
        topic=_one_of(data["topic"], DOMAINS, "topic"),
        language=_one_of(data["language"], LANGUAGES, "language"),
        stress=tuple(_one_of(cue, STRESS_CUES, "stress") for cue in _list(data["stress"], "stress")),
        slots=parse_slots(data.get("slots") or {}),
        cases=parse_cases(data.get("cases") or []),
        turns=tuple(_turn(turn, f"turns[{i + 1}]") for i, turn in enumerate(_list(data["turns"], "turns"))),
        queries={kind: _wordings(queries[kind], f"queries.{kind}") for kind in OVERLAPS},
        about=_scalar(data["about"], "about") if "about" in data else "",
        answer=_wordings(data["answer"], "answer"),
        wrong=tuple(_wordings(option, f"wrong[{i + 1}]") for i, option in enumerate(wrong)),
        reasoning=_scalar(data["reasoning"], "reasoning"),
        path=path,
    )
    clash = set(family.slots) & set(family.cases[0])
    if clash:
        raise FamilyError(f"{sorted(clash)[0]!r} is both a slot and a key of cases")
    return family


def parse_slots(data: Any) -> dict[str, tuple[str, ...]]:
    """Check the ``slots`` of a file: lists of texts, ``{range: [low, high]}``, or ``{pool: name}`` of `pools`."""
    if not isinstance(data, dict):
        raise FamilyError("slots: expected a mapping from names to lists of values")
    slots = {}
    for name, values in data.items():
        if isinstance(values, dict) and set(values) == {"pool"}:
            if values["pool"] not in pools():
                raise FamilyError(f"slots.{name}: no pool {values['pool']!r}; there are {', '.join(pools())}")
            slots[name] = pools()[values["pool"]]
        elif isinstance(values, dict):
            bounds = values.get("range")
            if set(values) != {"range"} or not isinstance(bounds, list) or len(bounds) != 2:
                raise FamilyError(f"slots.{name}: expected a list of values, {{range: [low, high]}} or {{pool: name}}")
            if not all(str(bound).isascii() and str(bound).isdigit() for bound in bounds):
                raise FamilyError(f"slots.{name}: a range needs two whole numbers")
            slots[name] = tuple(map(str, range(int(bounds[0]), int(bounds[1]) + 1)))
            if len(slots[name]) < 2:
                raise FamilyError(f"slots.{name}: the smaller bound of a range comes first")
        else:
            slots[name] = tuple(
                _scalar(value, f"slots.{name}[{i + 1}]") for i, value in enumerate(_list(values, f"slots.{name}"))
            )
        if len(set(slots[name])) != len(slots[name]):
            raise FamilyError(f"slots.{name}: the same value twice")
    return slots


@cache
def pools() -> Mapping[str, tuple[str, ...]]:
    """Values that recur over families, by the name of their pool."""
    path = _DATA / "pools.yaml"
    return {name: _wordings(values, f"{path}: {name}") for name, values in load_yaml(path).items()}


def parse_cases(data: Any) -> tuple[dict[str, str], ...]:
    """Check the ``cases`` of a file: mappings with the same keys; one empty case where there are none."""
    cases = [
        {key: _scalar(value, f"cases[{i + 1}].{key}") for key, value in case.items()}
        for i, case in enumerate(_list(data, "cases") if data else [{}])
        if isinstance(case, dict)
    ]
    if len(cases) != max(len(data), 1) or any(set(case) != set(cases[0]) for case in cases):
        raise FamilyError("cases: expected a list of mappings that all have the same keys")
    return tuple(cases)


def _turn(data: Any, where: str) -> FamilyTurn:
    if not isinstance(data, dict):
        raise FamilyError(f"{where}: expected 'user: [...]' or 'assistant: [...]'")
    roles = [key for key in data if key in ("user", "assistant")]
    if len(roles) != 1 or set(data) - {*_MARKS, *roles}:
        raise FamilyError(
            f"{where}: expected one role with its wordings and perhaps {' or '.join(_MARKS)}, got {list(data)}"
        )
    for mark in _MARKS:
        if data.get(mark, "false") not in ("true", "false"):
            raise FamilyError(f"{where}: {mark} must be true or false")
    evidence, optional = (data.get(mark) == "true" for mark in _MARKS)
    return FamilyTurn(roles[0], _wordings(data[roles[0]], where), evidence, optional)


def _wordings(data: Any, where: str) -> tuple[str, ...]:
    return tuple(_scalar(text, f"{where}, wording {i + 1}") for i, text in enumerate(_list(data, where)))


def _list(data: Any, where: str) -> list[Any]:
    if not isinstance(data, list) or not data:
        raise FamilyError(f"{where}: expected a non-empty list, got {data!r:.60}")
    return data


def _scalar(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise FamilyError(f"{where}: expected text, got {value!r:.60}; quote text that holds a colon or braces")
    text = " ".join(value.split())
    if not text:
        raise FamilyError(f"{where}: blank")
    return text


def _one_of(value: Any, known: Sequence[str], where: str) -> str:
    if value not in known:
        raise FamilyError(f"{where}: {value!r} is not one of {', '.join(known)}")
    return str(value)


if __name__ == "__main__":
    from scale_qa.family_lint import main

    sys.exit(main())
