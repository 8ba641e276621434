"""Which comments belong to an item, and what they say. Spec: 01 §1.1, §12."""

from __future__ import annotations

from bisect import bisect_left

from harnpy.check.lint.subject import Subject
from harnpy.syntax.ast import Node
from harnpy.syntax.comments import Comment


def comments_between(subject: Subject, start: int, end: int) -> list[Comment]:
    """The comments that begin in ``source[start:end]``."""
    comments = subject.comments
    first = bisect_left(comments, start, key=_start)
    return list(comments[first : bisect_left(comments, end, lo=first, key=_start)])


def comments_above(subject: Subject, item: Node) -> list[Comment]:
    """The comments right above a top-level item, each on lines of its own, with no blank line between."""
    source, comments = subject.source, subject.comments
    found: list[Comment] = []
    below = item.start
    for i in range(bisect_left(comments, item.start, key=_start) - 1, -1, -1):
        comment = comments[i]
        gap = source[comment.end : below]
        own_line = not source[source.rfind("\n", 0, comment.start) + 1 : comment.start].strip()
        if gap.strip() or gap.count("\n") != 1 or not own_line:
            break
        found.append(comment)
        below = comment.start
    return found[::-1]


def _start(comment: Comment) -> int:
    return comment.start
