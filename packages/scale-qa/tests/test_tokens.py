import pytest
from scale_qa.tokens import estimate_tokens, parse_tokens, words


def test_a_word_counts_one_point_three():
    assert words(" two  words\n") == 2
    assert estimate_tokens("two words") == pytest.approx(2.6)
    assert estimate_tokens("") == 0


def test_cjk_text_counts_by_characters_not_as_one_word():
    assert words("你好世界你好世界你好") == 7
    assert words("Tokyo は雨です。") == 1 + 4  # five characters, punctuation included, rounded up


@pytest.mark.parametrize(("text", "tokens"), [("16k", 16_000), ("1M", 1_000_000), ("131072", 131_072), ("2_000", 2000)])
def test_lengths_are_read(text, tokens):
    assert parse_tokens(text) == tokens


@pytest.mark.parametrize("text", ["", "k", "0", "-5k", "1.5k", "16kb", "²k"])
def test_what_is_no_length_is_refused(text):
    with pytest.raises(ValueError, match="is no length"):
        parse_tokens(text)
