from __future__ import annotations

import pytest
from tsim_core.cues import (
    ANSWER,
    ANSWERS_QUESTION,
    ASKS,
    REFERENCE,
    REFERENCE_NEAR,
    SHORT,
    asks,
    ends_asking,
    is_short,
    opening_evidence,
)


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("I need a train from Ely to Cambridge on Friday.", 0.0),
        ("Yes please, that would be lovely to have.", ANSWER),
        ("Thanks!", ANSWER + SHORT),
        ("That one with the garden sounds lovely.", REFERENCE),
        ("Can they move it to Friday instead?", REFERENCE_NEAR),
        ("Ja, das passt mir am Freitag gut.", ANSWER),
        ("Entonces lo dejamos para el viernes.", REFERENCE),
        ("好的，那就定在星期五下午三点在会议室见面吧。", ANSWER),
        ("それを金曜日の午後三時までに送ってください。", REFERENCE),
        ("请帮我查一下明天从北京到上海的火车票还有没有。", 0.0),
        ("", SHORT),
        ("\ud800 \x00", SHORT),
    ],
)
def test_first_words_of_a_user_tell_a_reply_from_an_opening(text: str, evidence: float) -> None:
    assert opening_evidence(text, answered=False, on_a_par=False) == pytest.approx(evidence)


def test_between_speakers_on_a_par_a_question_opens_and_what_follows_a_question_answers() -> None:
    assert opening_evidence("So what do you do for a living?", False, on_a_par=True) == ASKS
    assert opening_evidence("I work at the dentist's on the corner.", True, on_a_par=True) == ANSWERS_QUESTION
    assert opening_evidence("Yes, I work at the dentist's.", False, on_a_par=True) == 0.0


def test_questions_are_found_in_any_script() -> None:
    assert all(map(asks, ["Why? I said so.", "什么？", "متى؟"]))
    assert not ends_asking("Why? I said so.")
    assert ends_asking("Really? Why ? ")
    assert not asks("Tell me why.")


def test_short_turns() -> None:
    assert is_short("ok thanks bye")
    assert is_short("谢谢你")
    assert not is_short("please book a table")
    assert not is_short("请帮我查一下明天从北京到上海的火车票")
