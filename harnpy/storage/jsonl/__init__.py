"""The store that is a directory of JSON lines: one log a stream, readable with any tool.

`names`, `folders`, `locks` and `lines` say how bytes lie on disk; `state` and `log` read a log, `writing`
and `rewriting` write it, `logs` finds them all; `store` and `stream` are the contract's faces.
Spec: 10 §C6.1.
"""

from harnpy.storage.jsonl.store import JsonlStore, open_jsonl

__all__ = ["JsonlStore", "open_jsonl"]
