"""Draw records from families: deterministic, balanced, every query pointing to one dialogue of its family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, product
from math import prod
from typing import TypeVar

from scale_qa.dice import Dice
from scale_qa.errors import BuildError, FamilyError
from scale_qa.families import Family, fields, reacting, render
from scale_qa.noise import own_noise
from scale_qa.records import DOMAINS, LETTERS, OVERLAPS, Message, Record
from scale_qa.similarity import rare_words

T = TypeVar("T")
_TRIES = 200  # candidates looked at for one record before an attempt is given up
_FEW_TRIES = 40  # where asides are left out, which the query may not allow
_ATTEMPTS = 8
_MANY = 60  # from so many values on, chance alone spreads well
_POOL = 12  # valid candidates among which the most different one is taken
_DETOURS = 7  # one in so many records with several evidence turns talks of something else before the last of them
_DETOUR = range(4, 7)  # turns of that
_WEIGHTS = {1: 9, 2: 5, 3: 3}  # share of a family in its domain, by its evidence turns: few questions need three


@dataclass(frozen=True, slots=True)
class Draw:
    """One way to word a family: which value, which wording.

    Attributes:
        values: Value of every slot and of the keys of the drawn case.
        wordings: Index of the wording of each turn; None for one that is left out.
        kind: Kind of overlap.
        query: Index of the query wording within its kind.
        option: Index of the option wording; the four options use the same, so that none stands out.
        cue: The slot values that the query names and the dialogue shows.
    """

    values: Mapping[str, str]
    wordings: tuple[int | None, ...]
    kind: str
    query: int
    option: int
    cue: Mapping[str, str]


def generate(families: Sequence[Family], count: int, seed: int) -> list[Record]:
    """Draw ``count`` records, balanced over domains, letters and kinds of overlap.

    Args:
        families: At least one for each domain.
        count: How many, at least 40 (one of each letter a domain).
        seed: Other seed, other draw; the same seed gives the same records everywhere.

    Returns:
        The records, by domain and number.

    Raises:
        BuildError: If ``count`` is too small or a domain has no family.
        FamilyError: If a family has too few slot values for its share.
    """
    if count < len(DOMAINS) * len(LETTERS):
        raise BuildError(f"--count {count} is too small to balance: ask for 40 records or more")
    records: list[Record] = []
    detours = (talk.turns for talk in own_noise(f"detours {seed}") if len(talk.turns) in _DETOUR)
    spare, kinds = cycle(LETTERS), cycle(OVERLAPS)
    for domain, size in _shares(DOMAINS, count, Dice(seed, "domains")):
        members = sorted((f for f in families if f.topic == domain), key=lambda f: f.id)
        if not members:
            raise BuildError(f"no family for {domain}: add one under data/families/{domain}/")
        letters = [letter for letter in LETTERS for _ in range(size // len(LETTERS))]
        letters += [next(spare) for _ in range(size % len(LETTERS))]
        numbers = list(range(1, size + 1))
        dice = Dice(seed, "order", domain)
        dice.shuffle(letters)
        dice.shuffle(numbers)
        drawn: list[Record] = []
        weights = [_WEIGHTS[len(family.evidence)] for family in members]
        for family, share in _shares(members, size, Dice(seed, "families", domain), weights):
            for draw in draw_family(family, [next(kinds) for _ in range(share)], seed):
                place = len(drawn)
                id = f"our:{domain}-{numbers[place]:03d}"
                strays = family.language == "en" and len(family.evidence) > 1
                detour = next(detours) if strays and Dice(seed, "detour", id).below(_DETOURS) == 0 else ()
                drawn.append(make_record(family, draw, id, letters[place], seed, detour))
        records += sorted(drawn, key=lambda record: record.id)
    return records


def draw_family(family: Family, kinds: Sequence[str], seed: int) -> list[Draw]:
    """Draw one record of a family for each entry of ``kinds``.

    No two have the same cue (the slot values that the query names and its dialogue shows), and each differs
    in as many turns from the others as a sample of candidates allows.

    Raises:
        FamilyError: If the family has too few slot values for that.
    """
    best: list[Draw] = []
    for attempt in range(_ATTEMPTS):
        draws = _attempt(family, kinds, Dice(seed, "family", family.id, attempt))
        if len(draws) == len(kinds):
            return draws
        best = max(best, draws, key=len)
    raise FamilyError(
        f"{family.path}: only {len(best)} of {len(kinds)} records can be told apart by their query. "
        + scarcity(family, len(kinds))
    )


def _attempt(family: Family, kinds: Sequence[str], dice: Dice) -> list[Draw]:
    """Draw one record after the other; fewer than asked for when the dice fell badly or values are scarce."""
    first_case = dice.below(len(family.cases))
    used: Counter[tuple[str, object]] = Counter()
    draws: list[Draw] = []
    for number, kind in enumerate(kinds):
        case = family.cases[(first_case + number) % len(family.cases)]
        pools = (
            _pool(family, case, kind, left_out, used, draws, dice)
            for left_out in _left_out(family, dice)
            if _may_go(family, left_out, kind)
        )
        pool = next(filter(None, pools), None)
        if pool is None:
            return draws
        best = max(pool, key=lambda draw: _distance(draw, draws))
        draws.append(best)
        used.update(_parts(best))
    return draws


def _pool(
    family: Family,
    case: Mapping[str, str],
    kind: str,
    left_out: Collection[int],
    used: Counter[tuple[str, object]],
    draws: Sequence[Draw],
    dice: Dice,
) -> list[Draw]:
    """Valid candidates for the next record; none when no try gave one."""
    pool: list[Draw] = []
    for _ in range(_FEW_TRIES if left_out else _TRIES):
        draw = _candidate(family, case, kind, left_out, used, dice)
        if _is_sound(family, draw, draws):
            pool.append(draw)
            if len(pool) == _POOL:
                break
    return pool


def make_record(family: Family, draw: Draw, id: str, letter: str, seed: int, detour: Sequence[Message] = ()) -> Record:
    """Word one draw as a record with the right option at ``letter``; ``detour`` is talked before the last evidence."""
    say = _speaker(draw.values)
    query = family.queries[draw.kind][draw.query]
    if draw.kind == "indirect" and family.about:
        query = f"{query} {family.about}"
    spoken = _spoken(family, draw.wordings)
    last = family.evidence[-1]
    if detour:
        spoken[last] = _template(family, draw.wordings, last, to_reply=False)
    dialogue = [Message(family.turns[i].role, say(text)) for i, text in spoken.items()]
    place = list(spoken).index(last)
    dialogue[place:place] = detour
    wrong = [say(_wording(option, draw.option)) for option in family.wrong]
    Dice(seed, "options", id).shuffle(wrong)
    options = wrong.copy()
    options.insert(LETTERS.index(letter), say(_wording(family.answer, draw.option)))
    return Record(
        id=id,
        topic=family.topic,
        dialogue=tuple(dialogue),
        query=say(query),
        options=tuple(options),
        answer=letter,
        expected_doc=tuple(say(spoken[i]) for i in family.evidence),
        reasoning=say(family.reasoning),
        stress=family.stress,
        overlap=draw.kind,
        language=family.language,
        family=family.id,
    )


def scarcity(family: Family, count: int) -> str:
    """Say which slots the queries rely on that have too few values to tell ``count`` records apart."""
    shown = {name for turn in family.turns for text in turn.wordings for name in fields(text)}
    scarce: dict[str, int] = {}
    for text in (text for texts in family.queries.values() for text in texts):
        named = sorted(fields(text) & shown)
        cues = prod(
            len({case[name] for case in family.cases} if name in family.cases[0] else family.slots[name])
            for name in named
        )
        if cues < count:
            scarce[" x ".join(f"{{{name}}}" for name in named) or "no slot that the dialogue shows"] = cues
    if not scarce:
        return "Let every wording of some turn show the slots that the queries name, or add slot values."
    names = ", or only ".join(f"{names} ({cues})" for names, cues in scarce.items())
    return (
        f"Each query must name slots, shown by the dialogue, with {count} combinations or more; "
        f"some name only {names}. Add values to these slots, or name another slot too."
    )


def _candidate(
    family: Family,
    case: Mapping[str, str],
    kind: str,
    left_out: Collection[int],
    used: Counter[tuple[str, object]],
    dice: Dice,
) -> Draw:
    """A draw that prefers what was used least so far."""

    def rare(part: str, values: Sequence[T]) -> T:
        if len(values) > _MANY:
            return dice.choice(values)
        limit = min(used[part, value] for value in values) + dice.below(2)
        return dice.choice([value for value in values if used[part, value] <= limit])

    values = {name: rare(name, options) for name, options in family.slots.items()}
    values |= {name: render(text, values) for name, text in case.items()}
    wordings = tuple(
        None if i in left_out else rare(f"turn {i}", range(len(turn.wordings))) for i, turn in enumerate(family.turns)
    )
    query = rare(f"query {kind}", range(len(family.queries[kind])))
    shown = set().union(*map(fields, _spoken(family, wordings).values()))
    return Draw(
        values=values,
        wordings=wordings,
        kind=kind,
        query=query,
        option=rare("option", range(max(len(family.answer), *map(len, family.wrong)))),
        cue={name: values[name].casefold() for name in sorted(fields(family.queries[kind][query]) & shown)},
    )


def _left_out(family: Family, dice: Dice) -> Iterator[frozenset[int]]:
    """Turns that a record goes without, then choices that leave out less, down to nothing.

    It is the last exchanges of a run of asides, since each may take up the one before it; one stays in every fourth
    record, so that evidence stands near and far. What follows the last evidence stays.
    """
    kept = [int(dice.below(4) == 0) if run[0] < family.evidence[-1] else len(run) for run in family.asides]
    choices = product(*(range(least, len(run) + 1) for least, run in zip(kept, family.asides, strict=True)))
    for choice in sorted(choices, key=sum):
        users = [user for run, stays in zip(family.asides, choice, strict=True) for user in run[stays:]]
        yield frozenset(turn for user in users for turn in (user, user + 1))


def _may_go(family: Family, left_out: Collection[int], kind: str) -> bool:
    """Whether some query of the kind speaks of nothing that only the left out turns introduce."""
    turns = list(enumerate(family.turns))
    missing = _slots(family, (text for i, turn in turns if i in left_out for text in turn.wordings))
    lost = missing - _slots(family, (text for i, turn in turns if i not in left_out for text in turn.wordings))
    asked = [_slots(family, [query]) for query in family.queries[kind]]
    return not lost or any(not lost & slots for slots in asked)


def _spoken(family: Family, wordings: Sequence[int | None]) -> dict[int, str]:
    """Template of each turn that is said, by its position in the family."""
    return {
        i: _template(family, wordings, i, to_reply=i == 0 or wordings[i - 1] is not None)
        for i, wording in enumerate(wordings)
        if wording is not None
    }


def _template(family: Family, wordings: Sequence[int | None], place: int, *, to_reply: bool) -> str:
    wording = wordings[place]
    assert wording is not None
    return reacting(family.turns[place].wordings[wording], to_reply=to_reply)


def _parts(draw: Draw) -> Iterator[tuple[str, object]]:
    yield from ((f"turn {i}", wording) for i, wording in enumerate(draw.wordings) if wording is not None)
    yield f"query {draw.kind}", draw.query
    yield "option", draw.option
    yield from draw.values.items()


def _is_sound(family: Family, draw: Draw, others: Sequence[Draw]) -> bool:
    """A cue that no other draw has, four options, evidence that is one turn each, a rare word for a lexical query.

    What is left out introduces nothing that the question speaks of.
    """
    if any(
        not _turns_worded_otherwise(draw, other) or _fits(draw.cue, other) or _fits(other.cue, draw) for other in others
    ):
        return False
    say = _speaker(draw.values)
    options = [_wording(option, draw.option) for option in (family.answer, *family.wrong)]
    query = family.queries[draw.kind][draw.query]
    spoken = _spoken(family, draw.wordings)
    missing = [turn.wordings for turn, wording in zip(family.turns, draw.wordings, strict=True) if wording is None]
    if missing:
        lost = _slots(family, (text for texts in missing for text in texts)) - _slots(family, spoken.values())
        if lost & _slots(family, (query, *options)):
            return False
    texts = {i: say(text) for i, text in spoken.items()}
    said = list(texts.values())
    if len(set(map(say, options))) < len(LETTERS) or any(said.count(texts[i]) > 1 for i in family.evidence):
        return False
    if draw.kind != "lexical":
        return True
    rare = rare_words(say(query))
    return any(rare & rare_words(texts[i]) for i in family.evidence)


def _slots(family: Family, templates: Iterable[str]) -> set[str]:
    """Slots that ``templates`` use, those within the values of a case included."""
    used = set().union(*map(fields, templates))
    return used | {slot for case in family.cases for key in used & set(case) for slot in fields(case[key])}


def _fits(cue: Mapping[str, str], other: Draw) -> bool:
    return all(other.values[name].casefold() == value for name, value in cue.items())


def _distance(draw: Draw, others: Sequence[Draw]) -> tuple[int, int]:
    """How far the nearest other draw is: turns that are worded otherwise, then slots with another value."""
    return min(
        (
            (
                _turns_worded_otherwise(draw, other),
                sum(value != other.values[name] for name, value in draw.values.items()),
            )
            for other in others
        ),
        default=(0, 0),
    )


def _turns_worded_otherwise(draw: Draw, other: Draw) -> int:
    """Turns that both have, in other words."""
    return sum(a != b for a, b in zip(draw.wordings, other.wordings, strict=True) if a is not None and b is not None)


def _wording(texts: Sequence[str], index: int) -> str:
    return texts[index % len(texts)]


def _speaker(values: Mapping[str, str]) -> Callable[[str], str]:
    return lambda template: render(template, values)


def _shares(items: Sequence[T], total: int, dice: Dice, weights: Sequence[int] | None = None) -> list[tuple[T, int]]:
    """Split ``total`` by weight, evenly without; which items get one more is drawn."""
    weights = weights or [1] * len(items)
    shares = [total * weight // sum(weights) for weight in weights]
    more = set(dice.shuffled(range(len(items)))[: total - sum(shares)])
    return [(item, share + (i in more)) for i, (item, share) in enumerate(zip(items, shares, strict=True))]
