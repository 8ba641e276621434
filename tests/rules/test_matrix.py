"""The matrix: every place, in every way, under all rules, has no effect beyond the rules. Spec: 07 §8.5.

A campaign puts all rules in force in every way; otherwise each way is under one of them, always
the same, so that each of the rules is in force in some way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from tests.counts import COUNT
from tests.rules.places import AFTER_OTHERS, OF_FUNCTIONS, PLACES, Place
from tests.rules.recording import Record
from tests.rules.sets import POLICIES, UNRESTRICTED, VMS, Rules
from tests.rules.trial import trial
from tests.rules.ways import FREE_WAYS, WAYS


def _cells() -> Iterator[tuple[str, Rules]]:
    everything = COUNT.campaign > 0
    for number, way in enumerate(FREE_WAYS):
        # The first way, directly, is under all of them; the next under a third.
        yield from ((way, rules) for rules in (VMS if everything else VMS[number :: 1 + 2 * number]))
    known = [*POLICIES, *VMS]
    for number, way in enumerate(WAYS):
        yield from ((way, rules) for rules in (known if everything else [known[number % len(known)]]))


@pytest.mark.parametrize("way", [*FREE_WAYS, *WAYS])
def test_a_way_leads_to_every_place(way: str) -> None:
    """Without rules each place has its effects there: else the matrix would show nothing."""
    record = trial(way, UNRESTRICTED, PLACES)
    assert not record.failure
    unseen = AFTER_OTHERS | (OF_FUNCTIONS if way == "module initialiser" else frozenset())
    lacking = {
        place.name: place.effects - record.effects(place.name)
        for place in PLACES
        if not place.effects <= record.effects(place.name) and place.name not in unseen
    }
    assert not lacking
    assert {place.name for place in PLACES} == set(record.visited)


@pytest.mark.parametrize(("way", "rules"), list(_cells()), ids=lambda part: getattr(part, "name", part))
def test_nothing_happens_beyond_the_rules(way: str, rules: Rules) -> None:
    record = trial(way, rules, PLACES)
    assert not [each for each in record.happened if not rules.permit(each)]
    if way == "directly" and "deny" not in rules.vm:
        assert not _lacking(record, [place for place in PLACES if place.effects <= rules.allowed])


def _lacking(record: Record, places: Iterable[Place]) -> dict[str, frozenset[str]]:
    """Return the effects that places ought to have had and hadn't: rules don't refuse more than they say."""
    return {
        place.name: lacking
        for place in places
        if place.name not in AFTER_OTHERS and (lacking := place.effects - record.effects(place.name))
    }
