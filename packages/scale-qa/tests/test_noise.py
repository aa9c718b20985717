import textwrap
from collections import Counter
from itertools import islice

import pytest
from scale_qa.errors import FamilyError
from scale_qa.families import shipped_families
from scale_qa.noise import NoisePool, load_grammar, main, own_noise, shipped_grammars
from scale_qa.records import Message, NoiseDialogue
from scale_qa.tokens import words

GRAMMAR = """
    id: weather
    length: [1, 1]
    cases:
      - {town: Oslo, sky: rain}
      - {town: Bari, sky: sun}
    slots:
      day: [today, tomorrow]
    openings:
      - user:
          - ["How is {town} {day}?", "{town}, {day}, what sky?"]
        assistant:
          - ["{sky|cap}.", "There is {sky}."]
          - ["", "Take care."]
    exchanges:
      - user:
          - ["And {town} at night?", "What about the night in {town}?"]
        assistant: ["Much the same, {sky}.", ["Sleep well.", "Good night from {town}."]]
"""


@pytest.fixture
def write(tmp_path):
    def write(*changes):
        text = textwrap.dedent(GRAMMAR)
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        path = tmp_path / "weather.yaml"
        path.write_text(text)
        return path

    return write


def test_a_grammar_yields_until_it_would_repeat_itself(write):
    dialogues = list(own_noise(1, [load_grammar(write())]))
    texts = [turn.text for noise in dialogues for turn in noise.turns]
    assert len(texts) == len(set(texts))
    assert 2 <= len(dialogues) <= 4  # each town has two ways to ask about the night
    for noise in dialogues:
        assert [turn.role for turn in noise.turns] == ["user", "assistant"] * 2
        towns = {town for turn in noise.turns for town in ("Oslo", "Bari") if town in turn.text}
        assert len(towns) == 1


def test_the_shipped_noise_fills_128k_without_a_repeat():
    total, seen, kinds = 0, set(), Counter()
    for noise in own_noise(7):
        for turn in noise.turns:
            assert turn.text not in seen
            assert "{" not in turn.text
            assert "  " not in turn.text
            seen.add(turn.text)
            total += words(turn.text)
        kinds[noise.id.rsplit("-", 1)[0]] += 1
        if total * 1.3 > 300_000:
            break
    assert total * 1.3 > 300_000
    assert max(kinds.values()) <= 2 * min(kinds.values()) + 200
    assert len(kinds) == len(shipped_grammars())


def test_the_same_seed_gives_the_same_noise():
    assert list(islice(own_noise(3), 40)) == list(islice(own_noise(3), 40))
    assert list(islice(own_noise(3), 40)) != list(islice(own_noise(4), 40))


def test_a_short_pool_is_a_beginning_of_a_long_one():
    with NoisePool() as short, NoisePool() as long:
        short.add(own_noise(3), up_to_words=3_000)
        long.add(own_noise(3), up_to_words=6_000)
        assert short.entries == long.entries[: len(short.entries)]
        assert sum(entry.words for entry in short.entries) >= 3_000


def test_noise_does_not_name_what_the_families_invent():
    """A coined name of several words in the noise would make a question ambiguous."""
    coined = {v for f in shipped_families() for values in f.slots.values() for v in values if " " in v and v.istitle()}
    noise = " ".join(turn.text for d in islice(own_noise(7), 400) for turn in d.turns)
    assert not [name for name in coined if name in noise]


BROKEN = {
    "a key missing": (("openings:", "starts:"), "missing keys: .'openings'.; unknown keys: .'starts'."),
    "an unknown slot": (("How is {town}", "How is {place}"), "'place' is used but not defined"),
    "an unused slot": (("day: [today, tomorrow]", "day: [today, tomorrow]\n  hour: [one, two]"), "'hour'"),
    "too long": (("length: [1, 1]", "length: [1, 2]"), "does not fit 1 exchanges"),
    "no reply": (('    assistant: ["Much', '    answer: ["Much'), "expected 'user' and 'assistant'"),
    "an empty sentence": (('["", "Take care."]', "[]"), r"openings\[1\].assistant: a sentence is"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_grammar_is_an_error_that_names_it(write, name):
    change, message = BROKEN[name]
    path = write(change)
    with pytest.raises(FamilyError, match=message) as error:
        load_grammar(path)
    assert str(error.value).startswith(str(path))


def test_the_check_shows_what_a_grammar_yields(write, capsys):
    assert main([str(write()), "--show", "1"]) == 0
    out = capsys.readouterr().out
    assert "dialogues" in out
    assert "  user: " in out
    assert main([str(write(("id: weather", "name: weather")))]) == 1


def test_the_pool_gives_back_what_it_took_in_and_counts_doubles():
    a = NoiseDialogue("a", "s", "MIT", (Message("user", "Zwölf\nZeilen"), Message("assistant", "你好")))
    twin = NoiseDialogue("b", "other", "MIT", a.turns)
    with NoisePool() as pool:
        pool.add([a, twin])
        assert pool.duplicates == 1
        (entry,) = pool.entries
        assert (entry.words, entry.turns) == (2 + 2, 2)
        assert pool.load(entry) == a
        pool.add([NoiseDialogue("c", "s", "MIT", (Message("user", "x"),))])
        assert pool.load(pool.entries[1]).id == "c"
        assert pool.load(entry) == a
