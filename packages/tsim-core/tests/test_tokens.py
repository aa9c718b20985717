"""Length estimators against real tokenizers."""

from __future__ import annotations

import bpe_openai
import pytest
from tsim_core.errors import ConfigError
from tsim_core.tokens import published, resolve_estimator, universal

TEXTS = {
    "english": "We agreed that new projects run on a single consumer GPU, unless the lab lead signs off on more. " * 5,
    "chinese": "我们团队的规定是，周五之后不再发布新版本，除非产品经理亲自批准，并且测试全部通过。" * 5,
    "japanese": "来週の会議は水曜日に変更されましたので、資料を月曜日までに共有フォルダーに入れてください。" * 5,
    "korean": "다음 주 회의가 수요일로 변경되었으니 월요일까지 자료를 공유 폴더에 넣어 주세요. " * 5,
    "thai": "ประชุมสัปดาห์หน้าเลื่อนเป็นวันพุธ กรุณาส่งเอกสารภายในวันจันทร์" * 5,
    "german": "Die Rechtsschutzversicherungsgesellschaften verlangen Nachweise vor der Betriebsgenehmigung. " * 5,
    "code": "def rank(query, rows):\n    return sorted(rows, key=lambda row: -row.score)[: query.limit]\n" * 5,
    "links": "see https://example.com/path/to/some/resource?id=12345 and /usr/local/lib/python3.11/site-packages\n" * 5,
    "hashes": "a8f3e9c2b1d04756e9c2b1d04756a8f3 " * 10,
}


@pytest.mark.parametrize("kind", TEXTS)
def test_the_universal_estimate_is_within_a_factor_of_two_of_real_tokenizers(kind: str) -> None:
    text = TEXTS[kind]
    counts = [len(bpe_openai.get_encoding(name).encode(text)) for name in ("cl100k_base", "o200k_base")]
    assert min(counts) / 2 < universal(text) < max(counts) * 2


def test_on_plain_english_both_agree_as_published() -> None:
    text = "new projects run on a single consumer GPU"
    assert published(text) == universal(text) == pytest.approx(1.3 * 8)


def test_the_published_estimate_counts_a_page_of_chinese_as_a_word() -> None:
    assert published(TEXTS["chinese"]) == pytest.approx(1.3)


@pytest.mark.parametrize("text", ["", "  \n\t"])
def test_blank_text_has_no_tokens(text: str) -> None:
    assert published(text) == universal(text) == 0


def test_an_unknown_estimator_is_an_error() -> None:
    with pytest.raises(ConfigError, match="known: published, universal"):
        resolve_estimator("gpt")
