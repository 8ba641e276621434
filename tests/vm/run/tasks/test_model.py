"""Channels, mailboxes, select, mutex and semaphore together, under every kind of schedule. Spec: 05 §4 to §8.

Whoever is cancelled, no message is lost or doubled, each receiver sees a sender's messages in order, no more
than the capacity are inside a semaphore, a gate admits in the order of asking, and everybody ends.
"""

from __future__ import annotations

from io import StringIO

from hypothesis import example, given, settings
from hypothesis import strategies as st

from harnpy import Vm
from tests.clock import SimulatedClock
from tests.counts import COUNT
from tests.worlds import OwnWorld

_PROGRAM = """
pipeline main(task) {{
  let ch = channel("ch", {capacity})
  let box = mailbox_open("box", {capacity})
  let got = shared_map("got")
  let asked = shared_cell("asked", [])
  let granted = shared_cell("granted", [])
  let inside = atomic()
  let most = atomic()

  fn keep(who, m) {{
    if m != nil {{
      shared_map_set(got, who, shared_map_get(got, who, []) + [m])
    }}
    return m != nil
  }}
  fn work(who) {{
    shared_set(asked, shared_get(asked) + [who])
    let turn = sync_gate_acquire("g")
    shared_set(granted, shared_get(granted) + [who])
    sleep(1)
    sync_release(turn)
    let permit = sync_semaphore_acquire("s", 2)
    let now = atomic_add(inside, 1) + 1
    if now > atomic_get(most) {{
      atomic_set(most, now)
    }}
    sleep(1)
    atomic_add(inside, -1)
    sync_release(permit)
    mutex {{
      let before = shared_get("count") ?? 0
      sleep(1)
      shared_set("count", before + 1)
    }}
  }}
  fn consume(who, kind, working) {{
    var on = true
    while on {{
      if kind == 0 {{
        on = keep(who, receive(ch))
      }} else if kind == 1 {{
        on = keep(who, mailbox_receive(box))
      }} else {{
        on = keep(who, (channel_select([ch, box]) ?? {{value: nil}}).value)
      }}
      if on && working {{
        work(who)
      }}
    }}
  }}
  fn start(name, kinds, working) {{
    let numbers = range(0, len(kinds)).to_list()
    return numbers.map({{ i -> spawn {{ consume("${{name}}${{i}}", kinds[i], working) }} }})
  }}
  let consumers = start("c", {kinds}, true)
  let doomed = start("d", {doomed}, false)
  let senders = {senders}.map({{ s -> spawn {{
    for n in range(0, {messages}) {{
      if s % 2 == 0 {{ send(ch, [s, n]) }} else {{ mailbox_send(box, [s, n]) }}
      if (n + s) % 3 == 0 {{ sleep(1) }}
    }}
  }} }})
  for task in doomed {{
    sleep({pause})
    cancel(task)
  }}
  for task in senders {{
    await(task)
  }}
  close_channel(ch)
  mailbox_close(box)
  for task in consumers {{
    await(task)
  }}
  keep("rest", 0)
  return {{
    got: shared_map_entries(got),
    rest: [try_receive(ch), mailbox_try_receive(box)],
    most: atomic_get(most),
    asked: shared_get(asked),
    granted: shared_get(granted),
    count: shared_get("count") ?? 0,
  }}
}}
"""


class _Chaos(OwnWorld):
    def __init__(self, seed: int) -> None:
        out = StringIO()
        super().__init__(out.write, out.write, clock=SimulatedClock(tick=0))
        self._seed = str(seed)

    def get(self, name: str) -> str | None:
        return self._seed if name == "HARNPY_CHAOS_SCHED" else None


@settings(max_examples=COUNT.examples(12), deadline=None)
@example(seed=1233, capacity=3, kinds=[], doomed=[0, 2], senders=4, messages=3, pause=1)
@given(
    seed=st.integers(0, 10_000),
    capacity=st.integers(1, 3),
    kinds=st.lists(st.integers(0, 2), max_size=3),
    doomed=st.lists(st.integers(0, 2), max_size=3),
    senders=st.integers(0, 4),
    messages=st.integers(0, 6),
    pause=st.integers(0, 3),
)
def test_nothing_is_lost_doubled_or_starved(
    seed: int, capacity: int, kinds: list[int], doomed: list[int], senders: int, messages: int, pause: int
) -> None:
    """A select at the end receives from both, so that every message has a taker."""
    source = _PROGRAM.format(
        capacity=capacity,
        kinds=[*kinds, 2],
        doomed=doomed,
        senders=list(range(senders)),
        messages=messages,
        pause=pause,
    )
    end = Vm(world=_Chaos(seed)).run_source(source)
    assert end["got"].pop("rest") == [0]
    received = [tuple(m) for messages_of in end["got"].values() for m in messages_of]
    assert sorted(received) == [(s, n) for s in range(senders) for n in range(messages)]
    assert [m for m in end["rest"] if m is not None] == []
    for messages_of in end["got"].values():
        for sender in range(senders):
            numbers = [n for s, n in messages_of if s == sender]
            assert numbers == sorted(numbers)
    assert end["most"] <= 2
    assert end["granted"] == end["asked"]
    assert end["count"] == len(end["asked"])
