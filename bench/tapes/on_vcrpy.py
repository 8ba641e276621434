"""The agent in vcrpy: its cassette, which patches what httpx stands on.

`python on_vcrpy.py record | replay | branch`: what isn't on the cassette is asked (`new_episodes`) in a
branch. Its own matcher of bodies makes a diff to each request on the cassette, also while it records: 50
turns that repeat what was said take a minute.
"""

import sys
from typing import Any

import vcr
from time_machine_agent import Kit, main


def same_body(one: Any, other: Any) -> None:
    assert one.body == other.body, f"{one.body} isn't {other.body}"


modes = {"record": "all", "replay": "none", "branch": "new_episodes"}
recorder = vcr.VCR(record_mode=modes[sys.argv[1]], match_on=["method", "path", "same body"])
recorder.register_matcher("same body", same_body)
with recorder.use_cassette("tape/agent.yaml"):
    main(Kit())
