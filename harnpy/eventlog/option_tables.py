"""The options of waitpoints and monitors, as programs may write them. Spec: 06 §28, 10 §C18."""

from __future__ import annotations

from harnpy.reading.option_tables import OptionTable

CREATE = OptionTable("""
    id: string — what it is called; by default minted
    metadata: dict — what it is about
""")

COMPLETE = OptionTable("""
    by: string — who completes it
    create: bool = false — complete it even if nobody has created it
""")

CANCEL = OptionTable("""
    by: string — who cancels it
    reason: string — why
""")

WAIT = OptionTable("""
    wait_id: string — a wait that is entered again under its id keeps its deadline and its end
    timeout: duration | int — how long; by default without end
    all: bool = true — wait for all of them, not just for one
""")

WAIT_FOR = OptionTable(
    """
    wait_id: string — one that is entered again under its id keeps its deadline, its count and its result
    timeout: duration | int — how long
    poll_interval: duration | int = 1s — how long between two polls
    source: dict — what is polled
    condition: closure — called with the state, says whether it is as it should be
    """,
    {
        "source": OptionTable("""
            label: string — what it is called
            poll: closure — called with what is known of the wait, returns the state
            push_filter: string | dict — a topic, {topic, kind?}, whose events wake the poll early
            prefers_push: bool = false — don't poll in between when there is a push_filter
        """),
    },
)
