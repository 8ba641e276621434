"""The catalogue of skills for prompts: short, and within a budget. Spec: 07 §13.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.agent.skills.skill_registry import described, id_of, skill_lines
from harnpy.session.resize.summaries import byte_length

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harnpy.reading.dicts import Dict


BUDGET = 2000

_HEADER = (
    "## Available skills\n\n"
    "These skills are available. "
    'Call `load_skill({ name: "<skill-id>" })` to load the full body of a skill when it becomes relevant.\n\n'
)


def catalog_entries(skills: Iterable[Dict]) -> list[Dict]:
    """Return the catalogue's entry for each skill, by id."""
    entries = [_catalog_entry(skill) for skill in skills]
    return sorted(entries, key=lambda entry: entry["name"])


def render_catalog(entries: Sequence[Dict], budget: int = BUDGET) -> str:
    """Return the entries as a prompt's section of at most ``budget`` bytes; the rest is only counted."""
    blocks = [_block(entry) for entry in entries]
    budget = max(budget, byte_length(_HEADER + _omission(len(blocks))))
    kept = _fitting(blocks, budget)
    while len(kept) < len(blocks):
        text = _HEADER + "\n".join(kept) + _omission(len(blocks) - len(kept))
        if byte_length(text) <= budget:
            return text
        kept.pop()
    return _HEADER + ("\n".join(kept) or "(none)")


def _catalog_entry(skill: Dict) -> Dict:
    description, occasion = described(skill)
    short = skill.get("short")
    short = short if isinstance(short, str) else ""
    return {"name": id_of(skill), "description": short or description, "when_to_use": occasion}


def _block(entry: Dict) -> str:
    shown = _catalog_entry(entry)
    return "\n".join(skill_lines(f"`{shown['name']}`", shown["description"], shown["when_to_use"]))


def _fitting(blocks: Sequence[str], budget: int) -> list[str]:
    kept: list[str] = []
    size = byte_length(_HEADER)
    for block in blocks:
        size += byte_length(block) + (1 if kept else 0)
        if size > budget:
            break
        kept.append(block)
    return kept


def _omission(count: int) -> str:
    return f"\n\n... {count} more skill(s) omitted to stay within budget."
