"""`Dict`: a dict with text keys, which is what JSON objects and Harn's dicts are in Python."""

from __future__ import annotations

from typing import Any

Dict = dict[str, Any]
