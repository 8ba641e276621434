"""Files that harnpy reads, each intact, with the command that reads it."""

from __future__ import annotations

from dataclasses import dataclass

#: Leaves a record, checkpoints, a mailbox, agent state, a worker's snapshot and a daemon's directory behind.
MAKE = """
import { agent_state_init, agent_state_write } from "std/agent_state"

llm_mock({text: "drafted"})
let nodes = {
  draft: {kind: "stage", mode: "llm", prompt: "write"},
  check: {kind: "verify", verify: {command: "true"}},
}
let graph = {entry: "draft", nodes: nodes, edges: [{from: "draft", to: "check"}]}
workflow_execute("write a note", graph, [artifact({kind: "note", text: "hello"})], {persist_path: "run.json"})
checkpoint("plan", {steps: [1, 2.5, "three"], done: false})
workflow.signal("notes", "added", {n: 1})
workflow.publish_query("notes", "state", {ok: true})
agent_state_write(agent_state_init("state", {session_id: "s"}), "notes/a.md", "kept")
spawn_agent({task: "look", node: {kind: "stage", mode: "llm"}, wait: true})
let daemon = daemon_spawn({task: "watch", persist_path: "watching", provider: "mock"})
daemon_stop(daemon)
"""

_FIXTURE = """\
{"match": "*first*", "text": "one", "model": "mock", "input_tokens": 3, "blocks": []}
{"text": "", "tool_calls": [{"name": "look", "arguments": {"at": 1}}], "stop_reason": "tool_use"}
{"error": {"category": "rate_limit", "message": "slow down", "retry_after_ms": 5}}
"""
_PACK = """\
version = 1
id = "notes"
name = "Notes"

[[cases]]
id = "made"
run = "run.json"
rubrics = ["finished"]

[[rubrics]]
id = "finished"
kind = "deterministic"

[[rubrics.assertions]]
kind = "run-status"
expected = "completed"
"""
_MANIFEST = """\
[package]
name = "demo"
version = "0.1.0"

[exports]
tools = "tools.harn"

[llm.providers.local]
base_url = "http://127.0.0.1:9/v1"

[[hooks]]
event = "PreToolUse"
pattern = "*"
handler = "demo::watch"

[skills]
paths = ["skills"]
"""
_SKILL = """\
---
name: summarise
description: Sum up a text
when_to_use: [long texts]
allowed_tools: ["read_*"]
---
Write three sentences. ${1} and $ARGUMENTS.
"""
_PROMPT = """\
---
description = "A greeting"
---
Hello {{ name | upper }}{{ if names }}, {{ for n in names }}{{ n }}{{ end }}{{ end }}!
"""
_SIDECAR = """\
{"type": "provider_call_request", "iteration": 0, "model": "mock", "provider": "mock", "call_id": "c1"}
{"type": "message", "iteration": 0, "message": {"role": "user", "content": "hi"}}
{"type": "provider_call_response", "iteration": 0, "text": "hello", "call_id": "c1", "input_tokens": 1}
"""
_TRANSCRIPT = """\
{"_type": "transcript", "version": 2, "id": "t", "state": "active", "metadata": {}, "assets": [],
 "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}],
 "events": [{"id": "e", "kind": "message", "role": "user", "text": "hi", "blocks": []}]}
"""


@dataclass(frozen=True, slots=True)
class Input:
    """``file`` with ``text``, or as `MAKE` leaves it; ``command`` reads it, ``program`` if that is a program.

    A program finds the file's text in the file, so it is read, not written into the program.
    """

    file: str
    command: tuple[str, ...]
    text: str | None = None
    program: str | None = None


RUN = ("run", "reader.harn")

INPUTS = {
    "fixtures of replies": Input(
        "mock.jsonl", ("run", "--llm-mock", "mock.jsonl", "reader.harn"), _FIXTURE,
        'for i in 1 to 3 { try { println(llm_call("the first").text) } catch (e) { println("failed") } }',
    ),
    "a project's manifest": Input("harn.toml", RUN, _MANIFEST, "println(skills)"),
    "a skill": Input("skills/one/SKILL.md", RUN, _SKILL, "println(skills)"),
    "a template": Input(
        "greet.harn.prompt", RUN, _PROMPT, 'println(render("greet.harn.prompt", {name: "n", names: ["a"]}))'
    ),
    "a sidecar": Input("llm.jsonl", RUN, _SIDECAR, 'println(agent_session_seed_from_jsonl("llm.jsonl"))'),
    "a record": Input("run.json", RUN, None, 'println(run_record_load("run.json").status)'),
    "a record that is shown": Input("run.json", ("runs", "inspect", "run.json")),
    "a record that is replayed": Input("run.json", ("replay", "run.json")),
    "a record that is judged": Input("run.json", ("eval", "run.json")),
    "a record that is exported": Input("run.json", ("session", "export", "run.json", "--out", "again.json")),
    "a bundle that is checked": Input("bundle.json", ("session", "validate", "bundle.json")),
    "a bundle that is imported": Input(
        "bundle.json", ("session", "import", "bundle.json", "--out", "it.json")
    ),
    "an eval pack": Input("pack.toml", ("eval", "pack.toml"), _PACK),
    "checkpoints": Input(
        ".harn/checkpoints/reader.json", RUN, '{"plan": {"steps": [1, 2.5, "three"]}, "n": null}',
        'println(checkpoint_list())\ncheckpoint("more", 1)\nprintln(checkpoint_get("plan"))',
    ),
    "a mailbox": Input(
        ".harn/workflows/notes/state.json", RUN, None,
        'println(try { workflow.status("notes") })\nprintln(try { workflow.receive("notes") })\n'
        'println(try { workflow.query("notes", "state") })\n'
        'println(try { workflow.signal("notes", "x", 1) })',
    ),
    "a worker": Input("worker.json", RUN, None, 'println(try { resume_agent("./worker.json").status })'),
    "a daemon": Input("watching/daemon.json", RUN, None, 'println(try { daemon_resume("watching").status })'),
    "a transcript": Input(
        "transcript.json", RUN, _TRANSCRIPT,
        'let t = transcript_import(render("transcript.json", {}))\nprintln(t.messages)\n'
        "println(try { transcript_stats(t) })\nprintln(try { transcript_render_full(t) })",
    ),
}  # fmt: skip
