"""How well a skill matches the user's message and files. Pure. Spec: 07 §13.2."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from harnpy.agent.skills.skill_registry import described
from harnpy.session.resize.summaries import byte_length

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harnpy.reading.dicts import Dict


_TOKEN = re.compile(r"[^\W_]+")
_SHORTEST = 3
_NAMED = 2.0
_TOUCHED = 1.5
_DISABLED = ("disable-model-invocation", "disable_model_invocation")


class Candidate(NamedTuple):
    skill: Dict
    score: float
    reason: str


def candidates(skills: Iterable[Dict], message: str, working_files: Sequence[str]) -> list[Candidate]:
    """Return the skills that match at all, best first."""
    scored = [score(skill, message, working_files) for skill in skills if may_invoke(skill)]
    return sorted((found for found in scored if found.score > 0), key=lambda found: -found.score)


def may_invoke(skill: Dict) -> bool:
    """Whether the model may load the skill by itself."""
    return not any(skill.get(key) for key in _DISABLED)


def score(skill: Dict, message: str, working_files: Sequence[str]) -> Candidate:
    lowered = message.lower()
    tokens = [token for token in _TOKEN.findall(lowered) if byte_length(token) >= _SHORTEST]
    hits = sum(token in text.lower() for text in described(skill) for token in tokens)
    total, reasons = 0.0, []
    if hits:
        total += hits / (hits + 1.5)
        reasons.append(f"{hits} keyword hit(s)")
    if skill["name"].lower() in lowered:
        total += _NAMED
        reasons.append(f"prompt mentions '{skill['name']}'")
    touched = sum(_touches(pattern, working_files) for pattern in _paths(skill))
    if touched:
        total += _TOUCHED * touched
        reasons.append(f"{touched} path glob(s) matched")
    return Candidate(skill, total, "; ".join(reasons))


def path_pattern(glob: str) -> re.Pattern[str]:
    """``*`` and ``?`` stay within a segment of the path, ``**`` crosses them."""
    pieces = []
    for piece in re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", glob):
        pieces.append(_WILD.get(piece) or re.escape(piece))
    return re.compile("".join(pieces), re.DOTALL)


_WILD = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _paths(skill: Dict) -> list[str]:
    paths = skill.get("paths")
    return [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []


def _touches(glob: str, files: Sequence[str]) -> bool:
    pattern = path_pattern(glob)
    return any(pattern.fullmatch(file) for file in files)
