"""The ways in which a program gets to the places: each reaches all of them, under a policy of its own.

The places are in the module `placed`, whose `try_all` goes to one after the other, whatever becomes of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.rules.places import PRELUDE, Place

_TOOLS = """
import { try_all } from "./placed"
let POLICY = json_parse(argv[0])
fn using(handler) {
  llm_mock({tool_calls: [{name: "work", arguments: {}}]})
  return tool_define(tool_registry(), "work", "Work", {parameters: {}, handler: handler})
}
fn options(handler) {
  return {provider: "mock", tools: using(handler), max_iterations: 1, policy: POLICY}
}
fn within(handler) {
  return agent_loop("go", nil, options(handler))
}
let work = { args -> try_all() }
"""

#: Main programs; their argument is the policy as JSON.
WAYS: Mapping[str, str] = {
    "handler": "within(work)",
    "handler inside a handler": """
fn outer() {
  return within(work)
}
llm_mock({tool_calls: [{name: "outer", arguments: {}}]})
let tools = tool_define(tool_registry(), "outer", "Work", {parameters: {}, handler: { args -> outer() }})
agent_loop("go", nil, {provider: "mock", tools: tools, max_iterations: 1})
""",
    "sub-agent": 'sub_agent_run("go", options(work))',
    "background sub-agent": 'wait_agent(sub_agent_run("go", options(work) + {background: true}))',
    "worker": """
let node = {kind: "stage", tools: using(work), model_policy: {provider: "mock", max_iterations: 1}}
spawn_agent({task: "go", node: node, policy: POLICY, wait: true})
""",
    "workflow worker": """
let node = {kind: "stage", tools: using(work), model_policy: {provider: "mock", max_iterations: 1}}
spawn_agent({task: "go", graph: {entry: "n", nodes: {n: node}}, policy: POLICY, wait: true})
""",
    "worker with another task": """
let node = {kind: "stage", tools: using({ args -> if len(llm_mock_calls()) > 1 { try_all() } })}
let model = {model_policy: {provider: "mock", max_iterations: 1}}
let worker = spawn_agent({task: "go", node: node + model, policy: POLICY, wait: true})
llm_mock({tool_calls: [{name: "work", arguments: {}}]})
wait_agent(send_input(worker, "go on"))
""",
    "stage": """
let node = {kind: "stage", tools: using(work), model_policy: {provider: "mock", max_iterations: 1}}
workflow_execute("go", {entry: "n", nodes: {n: node + {capability_policy: POLICY}}})
""",
    "graph": """
let node = {kind: "stage", tools: using(work), model_policy: {provider: "mock", max_iterations: 1}}
workflow_execute("go", {entry: "n", nodes: {n: node}, capability_policy: POLICY})
""",
    "map": """
let model = {provider: "mock", max_iterations: 1}
let node = {kind: "map", prompt: "p", map_policy: {items: [1]}, tools: using(work), model_policy: model}
workflow_execute("go", {entry: "n", nodes: {n: node + {capability_policy: POLICY}}})
""",
    "daemon": """
let daemon = daemon_spawn(options(work) + {name: "d", task: "go", persist_path: "/program/daemon"})
sleep(1h)
daemon_stop(daemon)
""",
    "spawned task": "within({ args -> await(spawn { try_all() }) })",
    "parallel tasks": "within({ args -> parallel each [1] { x -> try_all() } })",
    "deferred": """
fn leave() {
  defer { try_all() }
  return "left"
}
within({ args -> leave() })
""",
    "catch and finally": """
within({ args ->
  try { throw "x" } catch (e) { try_all() } finally { try_all() }
})
""",
    "generator made outside": """
gen fn made() {
  try_all()
  emit 1
}
let outside = made()
within({ args ->
  for x in outside { }
  return "done"
})
""",
    "lazy iterator made outside": """
let outside = iter([1]).map({ x -> try_all() })
within({ args -> outside.to_list() })
""",
    "stream made outside": """
let outside = stream.map([1], { x -> try_all() })
within({ args -> outside.to_list() })
""",
    "deadline": "within({ args -> deadline 1h { try_all() } })",
    "function of the embedder": "within({ args -> call_back(try_all) })",
    "tool of the host": 'within({ args -> host_tool_call("call_back", {function: try_all}) })',
    "callback": "within({ args -> [2, 1].sort_by({ x -> try_all() }) })",
    "subscriber": """
within({ args ->
  agent_subscribe("s", { event -> try_all() })
  return agent_loop("go", nil, {provider: "mock", session_id: "s", max_iterations: 1})
})
""",
    "subscriber of the loop": """
agent_subscribe("s", { event -> if event.type == "tool_call" { try_all() } })
agent_loop("go", nil, options({ args -> "x" }) + {session_id: "s"})
""",
    "callbacks of a loop inside": """
within({ args ->
  let inner = options({ args -> "x" }) + {policy: nil, post_turn_callback: { info -> try_all() }}
  return agent_loop("go", nil, inner)
})
""",
    "permission": """
let asked = {allow: {work: { args -> try_all() == "done" }}}
within({ args -> agent_loop("go", nil, options({ args -> "x" }) + {policy: nil, permissions: asked}) })
""",
    "escalation": """
let asked = {deny: ["work"], on_escalation: { request -> try_all() == "done" }}
agent_loop("go", nil, options({ args -> "x" }) + {permissions: asked})
""",
    "compress callback": """
let short = {tool_output_max_chars: 200, compress_callback: { text -> try_all() }}
agent_loop("go", nil, options({ args -> "x" * 1000 }) + short)
""",
    "compaction": """
let dense = {compact_threshold: 0, compact_keep_last: 1, compact_callback: { messages -> try_all() }}
agent_loop("go", nil, options({ args -> "x" }) + {auto_compact: true} + dense)
""",
    "ranker of a stage": """
let ranker = { query, chunks -> chunks.map({ chunk -> if try_all() == "done" { 1.0 } else { 0.0 } }) }
let assembler = {query: "q", ranker_callback: ranker, strategy: "relevance"}
let node = {kind: "stage", mode: "llm", model_policy: {provider: "mock"}, context_assembler: assembler}
let graph = {entry: "n", nodes: {n: node + {capability_policy: POLICY}}}
workflow_execute("go", graph, [artifact({id: "a", text: "first"})])
""",
    "manifest hook": 'within({ args -> "x" })',
    "manifest hook of a stage": """
let node = {kind: "stage", tools: using({ args -> "x" }), model_policy: {provider: "mock", max_iterations: 1}}
workflow_execute("go", {entry: "n", nodes: {n: node + {capability_policy: POLICY}}})
""",
    "post turn callback": """
let loop = options({ args -> "x" }) + {post_turn_callback: { info -> try_all() }}
agent_loop("go", nil, loop)
""",
    "skill": """
let review = {prompt: "P", description: "review the change", on_activate: { -> try_all() }}
let skills = skill_define(skill_registry(), "review", review)
let loop = {provider: "mock", max_iterations: 1, policy: POLICY, skills: skills}
agent_loop("please review the change", nil, loop)
""",
}

#: Those that are under no policy: what they may do is what the Vm's programs may.
FREE_WAYS: Mapping[str, str] = {
    "directly": "try_all()",
    "module initialiser": "",
}

_AT_ONCE = """
let DONE = PLACES.map({ place ->
  at_place(place.name)
  let outcome = try { place.run() }
  return nil
})
"""

_HOOKED = """
import { try_all } from "./placed"
pub fn ask(payload) {
  try_all()
  return nil
}
"""

_MANIFEST = """
[package]
name = "program"
[[hooks]]
event = "PreToolUse"
handler = "hooked::ask"
"""


def program(way: str) -> str:
    return _TOOLS + {**WAYS, **FREE_WAYS}[way]


def modules(way: str, places: Iterable[Place]) -> dict[str, str]:
    """Return the files that the program is made of."""
    listed = "\n".join(f"  {{name: {_quoted(place.name)}, run: {{ -> {place.code} }}}}," for place in places)
    placed = f"""{PRELUDE}
let PLACES = [
{listed}
]
pub fn try_all() {{
  for place in PLACES {{
    at_place(place.name)
    let outcome = try {{ place.run() }}
  }}
  return "done"
}}
"""
    if way == "module initialiser":
        placed += _AT_ONCE
    files = {"/program/placed.harn": placed, "/program/harn.toml": '[package]\nname = "program"\n'}
    if way.startswith("manifest hook"):
        files |= {"/program/hooked.harn": _HOOKED, "/program/harn.toml": _MANIFEST}
    return files


def _quoted(text: str) -> str:
    return f'"{text}"'
