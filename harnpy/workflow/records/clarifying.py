"""Checking whether a run asked the expected clarifying question. Spec: 08 §8.3.

Questions are compared word by word: lower case, letters and digits only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harnpy.workflow.records.record_shapes import CLARIFICATION
from harnpy.workflow.shapes import made

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.agent.people.requests import Question
    from harnpy.workflow.records.record_types import ExpectedQuestion


_WORD = re.compile(r"[^\W_]+")


def failures(questions: Sequence[Question], given: ExpectedQuestion | None) -> Iterator[str]:
    """Report how the questions differ from what was expected."""
    wanted = given or made(CLARIFICATION, {})
    least = max(1, wanted["min_questions"] or 0)
    most = 1 if wanted["max_questions"] is None else wanted["max_questions"]
    count = len(questions)
    if count < least:
        yield f"expected at least {least} clarifying question(s), got {count}"
    if count > most:
        yield f"expected at most {most} clarifying question(s), got {count}"
    prompts = [question["prompt"] for question in questions]
    if prompts and not any(_matches(prompt, wanted) for prompt in prompts):
        shown = ", ".join(f'"{prompt}"' for prompt in prompts)
        yield f"no clarifying question matched fixture; actual questions: {shown}"


def _matches(prompt: str, wanted: ExpectedQuestion) -> bool:
    accepted = [text for text in (wanted["expected_question"], *wanted["accepted_questions"]) if text]
    said = _words(prompt)
    return (
        (not accepted or said in map(_words, accepted))
        and all(_words(term) in said for term in wanted["required_terms"])
        and not any(_words(term) in said for term in wanted["forbidden_terms"])
    )


def _words(text: str) -> str:
    """Return the words, each between spaces, so that a term is found where its words follow each other."""
    return f" {' '.join(_WORD.findall(text.lower()))} "
