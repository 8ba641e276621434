"""The agent in vcrpy: its cassette, which patches what httpx stands on.

`python on_vcrpy.py record | replay | branch`: what isn't on the cassette is asked (`new_episodes`) in a branch.
"""

import sys

import vcr
from time_machine_agent import Kit, main

modes = {"record": "all", "replay": "none", "branch": "new_episodes"}
with vcr.use_cassette(
    "tape/agent.yaml", record_mode=modes[sys.argv[1]], match_on=["method", "path", "body"]
):
    main(Kit())
