"""The agent in agenttape: its cassette, which patches httpx, and its decorator of tools.

`python on_agenttape.py record | replay | branch`: what isn't on the cassette is asked (`new_episodes`) in a
branch.
"""

import sys

import agenttape
from time_machine_agent import Kit, main

modes = {"record": "record", "replay": "none", "branch": "new_episodes"}
with agenttape.use_cassette("agent", mode=modes[sys.argv[1]], cassette_dir="tape"):
    main(Kit(tool=agenttape.tool))
