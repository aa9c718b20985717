"""What the first words of a turn say about whether it opens a topic: evidence that needs no model.

An answer ("yes please"), a reference back ("that one", "and what about it") and a turn of a word or two carry on;
among people who talk on a par, a question opens and the turn after a question answers. Each adds to the log-odds of a
shift. The word lists are short and closed-class; a language that is not listed simply has no such evidence.
"""

from __future__ import annotations

import re

# One line a language. Words that are an article or a polite pronoun elsewhere are left out ("il", "o", "das", "sie").
ANSWERS = frozenset(
    """
    yes yeah yep yup no nope nah not ok okay alright right sure fine thanks thank thx great perfect good cool nice
    awesome wonderful excellent wow oh ah hmm haha lol agreed exactly indeed true
    sí si vale claro gracias perfecto genial bueno bien
    ja nein doch nicht danke gut genau klar prima super stimmt
    oui non merci parfait bien d'accord voilà
    sim não obrigado obrigada perfeito certo
    sì grazie perfetto bene
    """.split()  # noqa: SIM905
)
REFERENCES = frozenset(
    """
    that that's thats it it's its this these those they them their he she his her him there then and but or so because
    also either neither both same actually
    eso esa ese esto esta este ellos ella él entonces pero y porque también
    dies diese dieser dieses jenes ihn ihm dann und aber oder denn auch davon dazu dafür
    ça cela celui celle ils elles alors et mais ou parce aussi
    isso isto esse essa eles ela ele então mas e porque também
    questo quello essi allora però perché anche
    """.split()  # noqa: SIM905
)
# Scripts without spaces: by how the text begins.
ANSWER_STARTS = tuple(
    """
    好的 好， 是的 不是 不， 不用 不要 嗯 对， 对的 對， 谢谢 謝謝
    はい いいえ ええ うん ありがとう 了解です 了解しました
    네 아니
    """.split()  # noqa: SIM905
)
REFERENCE_STARTS = tuple(
    """
    那 这个 這個 它 他 她 但 而且 所以 还有 還有
    その それ この これ でも じゃあ では あと
    그
    """.split()  # noqa: SIM905
)

ANSWER, REFERENCE, REFERENCE_NEAR, SHORT = -2.0, -1.6, -1.0, -0.7  # log-odds
ASKS, ANSWERS_QUESTION = 1.2, -1.0
NEAR = 4  # words in which a reference back still counts, and below which a turn is short

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_QUESTION = ("?", "？", "؟")


def asks(text: str) -> bool:
    """Whether a text holds a question mark."""
    return any(mark in text for mark in _QUESTION)


def ends_asking(text: str) -> bool:
    """Whether a text ends in a question mark."""
    return text.rstrip().endswith(_QUESTION)


def opening_evidence(text: str, answered: bool, on_a_par: bool) -> float:
    """Log-odds that a turn opens a topic, from its first words alone.

    Args:
        text: The turn.
        answered: Whether the turn before it ended in a question.
        on_a_par: True between speakers on a par, False where a user writes to an assistant.
    """
    head = text.lstrip()[:80]
    words = _first_words(head)
    first = words[0] if words else ""
    evidence = 0.0
    if on_a_par:
        evidence += ASKS * asks(text) + ANSWERS_QUESTION * answered
    elif first in ANSWERS or head.startswith(ANSWER_STARTS):
        evidence += ANSWER
    elif first in REFERENCES or head.startswith(REFERENCE_STARTS):
        evidence += REFERENCE
    elif any(word in REFERENCES for word in words):
        evidence += REFERENCE_NEAR
    return evidence + SHORT * is_short(text)


def is_short(text: str) -> bool:
    """Whether a text has fewer than `NEAR` words, or is as short in a script without spaces."""
    head = text.lstrip()[:80]
    return len(_first_words(head)) < NEAR and len(head) < 4 * NEAR


def _first_words(head: str) -> list[str]:
    return [word.lower().replace("’", "'") for word in _WORD.findall(head)[:NEAR]]
