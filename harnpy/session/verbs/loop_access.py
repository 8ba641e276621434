"""What a running agent loop needs of a session. Spec: 08 §1.7, §1.11."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.reading.dicts import detached
from harnpy.session.kept.keeping import take_hold

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.session.log import Session
    from harnpy.session.resident import Follower
    from harnpy.session.residents import Residents


def prompt_state(residents: Residents, id: str) -> tuple[list[Dict], str | None]:
    """Return what a loop starts from: the messages, led by the summary, and the summary."""
    messages, summary = residents.find(id).session.prompt_state()
    return detached(messages), summary


def store_transcript(residents: Residents, id: str, transcript: Dict) -> None:
    """Replace the session's contents with the transcript's. Ignores unknown ids."""
    resident = residents.by_id.get(id)
    if resident is None:
        return
    residents.touch(id)
    resident.session.restore(detached(transcript))


def follow(residents: Residents, follower: Follower) -> Session:
    """Open the follower's session and notify the follower of what others do to it."""
    resident = residents.open_resident(follower.id)
    take_hold(resident, residents.lease_wait)
    resident.followers.append(follower)
    return resident.session


def followed(residents: Residents, follower: Follower) -> Session | None:
    """Return the follower's session; None once it was closed, even if its id has been reused."""
    resident = residents.by_id.get(follower.id)
    return resident.session if resident is not None and follower in resident.followers else None


def is_alone(residents: Residents, follower: Follower) -> bool:
    """Whether no other loop runs on the follower's session."""
    return residents.by_id[follower.id].followers == [follower]


def notify_overtaken(residents: Residents, follower: Follower) -> None:
    """Notify the session's other followers that this one compacted it."""
    resident = residents.by_id.get(follower.id)
    for other in resident.followers if resident is not None else ():
        if other is not follower:
            other.overtaken()


def unfollow(residents: Residents, follower: Follower) -> None:
    resident = residents.by_id.get(follower.id)
    if resident is not None and follower in resident.followers:
        resident.followers.remove(follower)
        if not resident.followers:
            resident.let_go()


def inject_feedback(residents: Residents, id: str, kind: str, content: str) -> None:
    """Queue a note for the loop that runs under ``id`` now or next."""
    residents.feedback.setdefault(id, []).append((kind, content))


def has_feedback(residents: Residents, id: str) -> bool:
    """Whether a note is queued for the loop that runs under ``id``."""
    return bool(residents.feedback.get(id))


def take_feedback(residents: Residents, id: str) -> list[tuple[str, str]]:
    """Remove and return the queued (kind, content) pairs."""
    return residents.feedback.pop(id, [])
