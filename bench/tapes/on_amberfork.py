"""amberfork compares two recordings, so an edited agent is recorded again, and then compared with the first
one.

`python on_amberfork.py AMBERFORK URL [--verify]`: with `--verify` it runs the agent once more, with the
recorded replies up to where the two part, the first one's reply there, and live replies behind it: the
nearest that it has to a branch.
"""

import subprocess
import sys
from pathlib import Path

amberfork, url, *verify = sys.argv[1:]
agent = ["--", sys.executable, str(Path(__file__).with_name("on_plain.py"))]
live = ["--upstream", url, "--base-url-env", "MODEL_URL"]
subprocess.run([amberfork, "record", *live, "--out", "again.json", *agent], check=True, capture_output=True)
more = ["--verify", "--runs", "1", *live, *agent] if verify else []
sys.exit(subprocess.run([amberfork, "diff", "again.json", "--against", "run.json", *more]).returncode)
