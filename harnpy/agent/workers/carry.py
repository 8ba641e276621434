"""What a worker carries from one task to the next: transcript and artifacts. Spec: 07 §11.2, 08 §13.1."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from harnpy.agent.workers.requested import requested_policies
from harnpy.faults import MisuseError
from harnpy.session.resize import summaries
from harnpy.session.resize.compaction import CompactPolicy
from harnpy.session.resize.engine import merged_summary
from harnpy.session.resize.pairs import Pairs
from harnpy.session.transcripts import Transcripts
from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.agent.rules.policy import Policy
    from harnpy.reading.dicts import Dict
    from harnpy.world import World


INHERIT, FORK, RESET, COMPACT, NONE = "inherit", "fork", "reset", "compact", "none"
TRANSCRIPT_MODES = (INHERIT, FORK, RESET, COMPACT)
ARTIFACT_MODES = (INHERIT, NONE)
#: How many messages `compact` keeps.
_KEPT = 2


@dataclass(frozen=True, slots=True)
class Carry:
    """``transcript_mode`` says how a restarted worker's conversation continues, ``artifact_mode`` whether it
    starts from its artifacts; ``context_policy`` selects among those."""

    transcript_mode: str = INHERIT
    artifact_mode: str = INHERIT
    context_policy: Dict | None = None
    resume_workflow: bool = True
    persist_state: bool = True
    retriggerable: bool = False

    def as_dict(self) -> Dict:
        return asdict(self)


def read_carry(given: Any, caller: str) -> Carry:
    """Return the settings in a dict. Raises `MisuseError`, which names ``caller``."""
    if given is None:
        return Carry()
    if not isinstance(given, dict):
        raise MisuseError(f"{caller}: carry must be a dict")
    transcript, artifacts = given.get("transcript"), given.get("artifacts")
    if isinstance(transcript, dict):
        transcript = transcript.get("mode")
    policy = given.get("context_policy")
    if isinstance(artifacts, dict):
        policy, artifacts = artifacts if policy is None else policy, None
    if policy is not None and not isinstance(policy, dict):
        raise MisuseError(f"{caller}: carry.context_policy must be a dict")
    return Carry(
        _mode(given, "transcript_mode", transcript, TRANSCRIPT_MODES, caller),
        _mode(given, "artifact_mode", artifacts, ARTIFACT_MODES, caller),
        policy,
        _flag(given, "resume_workflow", True),
        _flag(given, "persist_state", True),
        _flag(given, "retriggerable", False),
    )


def carried_policies(given: Any, caller: str) -> list[Policy]:
    """Return the ceilings among the settings."""
    settings = given if isinstance(given, dict) else {}
    return requested_policies(settings.get("policy"), settings.get("tools"), caller)


def _mode(given: Dict, key: str, alias: Any, modes: Sequence[str], caller: str) -> str:
    mode = alias if given.get(key) is None else given[key]
    if mode is None:
        return INHERIT
    if mode not in modes:
        shown = mode if isinstance(mode, str) else compact_json(mode)
        raise MisuseError(f"{caller}: carry.{key} must be one of {', '.join(modes)}; got `{shown}`")
    return str(mode)


def _flag(given: Dict, key: str, default: bool) -> bool:
    value = given.get(key)
    return default if value is None else bool(value)


# Transcripts.


def forked(transcript: Dict, id: str) -> Dict:
    """Return a copy under another id that records its origin."""
    metadata = {**(transcript.get("metadata") or {}), "parent_transcript_id": transcript.get("id")}
    return {**transcript, "id": id, "metadata": metadata}


def compacted(transcript: Dict, world: World) -> Dict:
    """Return the transcript with its last two messages, and a summary of those before them.

    A tool call and its result stay together, so there may be one more message.
    """
    messages = transcript["messages"]
    if len(messages) <= _KEPT:
        return transcript
    split = Pairs(messages).whole_cut(len(messages) - _KEPT, 0)
    if split == 0:
        return transcript
    text = summaries.write("truncate", messages[:split], split, CompactPolicy())
    summary = merged_summary(transcript.get("summary"), text)
    return Transcripts(world).with_messages(transcript, messages[split:], summary=summary)
