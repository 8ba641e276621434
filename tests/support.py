"""Names that several test modules need."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: The `harnpy` fixture: `harnpy("run", "x.harn", stdin="…", NO_COLOR="1")`.
Command = Callable[..., "subprocess.CompletedProcess[str]"]
