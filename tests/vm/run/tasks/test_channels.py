"""The law of channels: whoever is cancelled, no message is lost, doubled or out of order (05 §4)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy import Vm
from tests.clock import simulated_time
from tests.counts import COUNT

_PROGRAM = """
pipeline main(task) {{
  let ch = channel("law", {capacity})
  let receivers = [{receivers}]
  sleep(1)
  for i in range(0, {at_once}) {{ send(ch, i) }}
  {cancels}
  let sender = spawn {{
    for i in range({at_once}, {messages}) {{ send(ch, i) }}
    close_channel(ch)
  }}
  var got = []
  {awaits}
  return got + ch.iter().to_list()
}}
"""


@settings(max_examples=COUNT.examples(12))
@given(capacity=st.integers(1, 4), messages=st.integers(0, 8), stays=st.lists(st.booleans(), max_size=5))
def test_every_message_reaches_one_receiver_in_order(capacity: int, messages: int, stays: list[bool]) -> None:
    """Tasks wait in line; some are cancelled when messages for them are in the channel already."""
    source = _PROGRAM.format(
        capacity=capacity,
        messages=messages,
        at_once=min(capacity, messages),
        receivers=", ".join("spawn { receive(ch) }" for _ in stays),
        cancels="\n".join(f"cancel(receivers[{i}])" for i, stay in enumerate(stays) if not stay),
        awaits="\n".join(f"got = got + [await(receivers[{i}])]" for i, stay in enumerate(stays) if stay),
    )
    with simulated_time():
        got = Vm().run_source(source)
    assert got == [*range(messages), *[None] * (sum(stays) - messages)]
