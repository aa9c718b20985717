from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tsim_core.lexical import hashed_terms, label_terms, query_terms, terms, without_label


def of(text: str) -> set[str]:
    return set(terms(text))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("We deployed two servers.", "deploying the SERVER"),
        ("Café Zürich", "cafe zurich"),
        ("That's Caroline's book", "caroline"),
        ("it\u2019s l\u2019eau de Javel", "eau"),
        ("ＦＵＬＬ width", "full"),
        ("1,300 tokens", "1300"),
    ],
)
def test_forms_of_a_word_meet(text: str, query: str) -> None:
    assert of(text) & of(query)


@pytest.mark.parametrize(
    ("text", "whole", "parts"),
    [
        ("see PEG-20 today", "peg-20", {"peg", "20"}),
        ("fixed in #402.", "#402", {"402"}),
        ("since v1.2.3, at last", "v1.2.3", {"v1", "2", "3"}),
        ("in src/app/main.py:", "src/app/main.py", {"src", "app", "main", "py"}),
        ("set max_tokens now", "max_tokens", {"max", "token"}),
        ("mail ann@example.org", "ann@example.org", {"ann"}),
    ],
)
def test_identifiers_are_kept_whole_and_in_parts(text: str, whole: str, parts: set[str]) -> None:
    assert {whole, *parts} <= of(text)


def test_prose_is_not_taken_for_identifiers() -> None:
    assert list(terms("A well-known end.Then more")) == ["a", "well", "known", "end", "then", "more"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我们决定使用红色按钮", "按钮"),
        ("会議は東京タワーで行います", "東京タワー"),
        ("การประชุมจัดที่กรุงเทพมหานคร", "กรุงเทพ"),
        ("서울에서 회의를 합니다", "회의"),
        ("हिन्दी में लिखो", "हिन्दी"),
        ("встречаемся на Невском", "невском"),
    ],
)
def test_every_script_is_found(text: str, query: str) -> None:
    assert of(text) & of(query)


def test_unspaced_text_gives_single_characters_and_pairs() -> None:
    assert list(terms("红按钮")) == ["红", "按", "钮", "红按", "按钮"]


def test_a_word_with_vowel_signs_stays_one_word() -> None:
    assert list(terms("हिन्दी")) == ["हिन्दी"]


def test_hashes_are_the_same_on_every_machine() -> None:
    assert hashed_terms("PEG-20").tolist() == [1626135131, 2322626082, 3070175883]


@given(st.text())
def test_any_text_has_terms_or_none(text: str) -> None:
    hashed = hashed_terms(text)
    assert hashed.dtype == np.uint32
    assert len(hashed) == len([*terms(text), *label_terms(text)])


@given(st.text(alphabet="abc XYZ-1_#.", max_size=30))
def test_case_does_not_matter(text: str) -> None:
    assert list(terms(text.upper())) == list(terms(text.lower()))


@pytest.mark.parametrize(
    ("text", "query"),
    [("Ann: hello", "what did ann say"), ("Ann Lee: hi", "Lee?"), ("小明：你好", "小明说了什么")],
)
def test_a_label_says_who_speaks(text: str, query: str) -> None:
    words, labels = query_terms(query)
    assert len(words) == len(labels)
    assert np.isin(labels, hashed_terms(text)).any()
    assert not np.isin(labels, hashed_terms(query)).any()


@pytest.mark.parametrize("text", ["see: this", "at 10:30 we go", "I think that this is it: yes", "Ann:", "https://a.b"])
def test_what_is_no_name_is_no_label(text: str) -> None:
    assert list(label_terms(text)) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Ana: at noon", "at noon"),
        ("Ana Paz : at noon", "at noon"),
        ("小林：明天见", "明天见"),
        ("Alma rules: no pets", "Alma rules: no pets"),
        ("Meet at 10:30", "Meet at 10:30"),
        ("Ana:", "Ana:"),
        ("", ""),
    ],
)
def test_a_name_in_front_is_no_part_of_what_is_said(text: str, said: str) -> None:
    assert without_label(text) == said


@given(st.text(st.characters(max_codepoint=127), max_size=40))
def test_plain_text_has_the_same_terms_by_the_short_way(text: str) -> None:
    assert list(terms(f"字 {text}")) == ["字", *terms(text)]


def test_acronyms_have_plurals() -> None:
    assert of("GPUs, PRs, SKUs and URLs") == of("GPU, PR, SKU and URL")
