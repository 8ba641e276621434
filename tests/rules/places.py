"""Every place of the language where a program can have an effect: an expression that has it, and which.

They are in `places.txt`: name, code and effects of one on each line. A place covers the builtin that it is
named after; what follows a space is its variant: a stage kind, an option, an operation of the host.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple


class Place(NamedTuple):
    """``effects`` are those that the ``code`` has when nothing is restricted."""

    name: str
    code: str
    effects: frozenset[str]

    @property
    def builtin(self) -> str:
        return self.name.split()[0]


#: What the code of the places may use.
PRELUDE = """
let M = {provider: "recorded", model: "m"}
let TALK = [
  {role: "user", content: "one"}, {role: "assistant", content: "two"},
  {role: "user", content: "three"}, {role: "assistant", content: "four"},
]
let STATE = {_type: "state_handle", root: "/kept", session_id: "s", conflict_policy: "ignore", writer: {}}
let EVENT = {kind: "repeated_query", redacted_summary: "x", source: "t", actor: "a", tool: "t", provider: "p"}
fn talk(id) {
  agent_session_open(id)
  for message in TALK { agent_session_inject(id, message) }
  return id
}
fn stored(id) {
  if !__session_exists(id) { __session_create({id: id, seed: TALK}) }
  return id
}
fn node(given) {
  return workflow_execute("go", {entry: "n", nodes: {n: given}}, [artifact({text: "x"})])
}
fn branching(given) {
  return workflow_execute("go", {entry: "n", nodes: {n: given, a: {kind: "join"}, b: {kind: "join"}}, edges: [
    {from: "n", to: "a", branch: "true"}, {from: "n", to: "b", branch: "false"},
  ]})
}
fn checked(verify) {
  return node({kind: "verify", verify: verify})
}
fn ran(node, config = {}) {
  return spawn_agent({task: "go", node: node, wait: true, carry: {persist_state: false}} + config)
}
"""

#: Files that the places find.
FILES = {
    "/elsewhere/text.txt": "secret",
    "/elsewhere/bundle.prompt": "{{ include 'text.txt' }}",
    "/elsewhere/run.json": '{"id": "r", "child_runs": [{"run_path": "/elsewhere/run2.json"}]}',
    "/elsewhere/run2.json": '{"id": "r2"}',
    "/elsewhere/talk.jsonl": '{"role": "user", "content": "hi"}\n',
    "/elsewhere/stored.json": '{"id": "in", "full_context": [], "context_window": []}',
    "/elsewhere/contract.json": '{"summary": "s"}',
    "/elsewhere/events.jsonl": "",
    "/elsewhere/project/harn.toml": "",
    "/elsewhere/project/root.prompt": "{{ include '@/parts/part.prompt' }}",
    "/elsewhere/project/parts/part.prompt": "secret",
    "/program/marked.prompt": "secret",
    "/bin/sh": "",
}


def _read(line: str) -> Place:
    name, rest = line.split(" | ", 1)
    code, effects = rest.rsplit(" | ", 1)
    return Place(name, code, frozenset(effects.split()))


PLACES = [_read(line) for line in (Path(__file__).parent / "places.txt").read_text().splitlines()]

#: Places that find in memory what others have read: alone they have their effect.
AFTER_OTHERS = frozenset(
    ["checkpoint_get", "checkpoint_exists", "checkpoint_list", "store_get", "store_list", "metadata_set",
     "metadata_get", "metadata_resolve", "metadata_entries", "metadata_status", "metadata_stale",
     "metadata_refresh_hashes"]
)  # fmt: skip

#: Places that call functions of their module, which has none yet while it is initialised.
OF_FUNCTIONS = frozenset(
    place.name for place in PLACES if re.search(r"\b(?:branching|checked|node|ran|stored|talk)\(", place.code)
)
