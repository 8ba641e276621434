#!/usr/bin/env bash
# agenttape 0.1.8: while a run is recorded, the clock stands still for it.
#
# A cassette freezes the clock when it is opened: `time.time()` and `datetime.now()` return the moment of its opening until it is
# closed. That is so in a replay, and by default also in a recording (`freeze` in agenttape.toml has the clock), although the
# docstring of `default_features` says that it is off there. `time.monotonic()` goes on.
#
# Most would guess: a recording watches. The program reads the real clock, and a replay returns what it read.
#
# Why it matters: the run that is recorded isn't the run that would have been. `while time.time() < deadline` never ends,
# backoff and caches don't expire, and everything that an agent stamps, logs or writes into its prompt happened at one moment;
# that is what is then kept as the reference.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile agenttape==0.1.8
venv/bin/python - <<'EOF' | tee seen
import time
from datetime import datetime

import agenttape


def look():
    wall, moment, real = time.time(), datetime.now(), time.monotonic()
    time.sleep(0.5)
    passed = time.time() - wall, (datetime.now() - moment).total_seconds(), time.monotonic() - real
    return "time {:.1f}, datetime {:.1f}, monotonic {:.1f}".format(*passed)


print("by itself:", look())
with agenttape.use_cassette("run", mode="record"):
    print("recorded: ", look())
EOF
grep -q '^by itself: time 0.5, datetime 0.5, monotonic 0.5' seen
grep -q '^recorded:  time 0.0, datetime 0.0, monotonic 0.5' seen || { echo "changed: the clock goes on"; exit 1; }
