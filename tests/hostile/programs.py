"""Programs that would go on for very long, or for ever: each must be ended from outside."""

from __future__ import annotations

import re

#: What the programs use, by the name that they have for it.
_SETUP = {
    "many": "let many = range(20000).to_list()",
    "lists": "let lists = range(5000).map({ n -> [n] }).to_list()",
    "pairs": "let pairs = range(5000).map({ n -> pair(n % 100, n) }).to_list()",
    "text": 'let text = "a" * 100000',
    "entries": 'let entries = range(5000).map({ n -> pair("key ${n}", n) }).to_dict()',
    "json": "let json = json_stringify(range(5000).map({ n -> [n] }).to_list())",
    "loops": """
let loops = "{{ for n in x }}{{ for m in x }}{{ for k in x }}{{ end }}{{ end }}{{ end }}"
""",
    "outside": "let outside = range(1000000000000).map({ n -> n + 1 })",
    "again": "fn again(n) { return again(n + 1) }",
    "stubborn": """
fn stubborn() {
  try { while true { } } catch (e) { }
  return stubborn()
}
""",
    "doubled": """
var definitions = {d0: {type: "nil"}}
for n in 1 to 60 {
  let inner = {"$ref": "#/definitions/d${n - 1}"}
  definitions = definitions + {["d${n}"]: {union: [inner, {all_of: [inner]}]}}
}
let doubled = {all_of: [{"$ref": "#/definitions/d60"}], definitions: definitions}
""",
    "graph": """
let graph = {entry: "a", nodes: {a: {kind: "stage", mode: "llm", model_policy: {provider: "mock"}}}}
""",
    # The first call of a model imports much.
    "provider|graph": 'agent_loop("begin", nil, {provider: "mock", max_iterations: 1})',
    "endless": """
gen fn endless() {
  var n = 0
  while true { emit n
    n = n + 1 }
}
""",
    "catching": """
gen fn catching() {
  while true { try { while true { } } catch (e) { emit e } }
}
""",
}

#: The body of each, by what it tries.
PROGRAMS = {
    "a loop": "while true { }",
    "a loop that catches": "while true { try { while true { } } catch (e) { } }",
    "a handler that loops": "try { while true { } } catch (e) { while true { } }",
    "a finally that loops": "try { while true { } } finally { while true { } }",
    "a handler that opens blocks": "try { sleep(1h) } catch (e) { while true { deadline 1h { } } }",
    "a handler that sums": "try { sleep(1h) } catch (e) { while true { range(100000).sum() } }",
    "a function that catches": "stubborn()",
    "tail calls": "again(0)",
    "retries": 'retry 1000000000 { throw "again" }',
    "retries of it": "retry 1000000000 { while true { } }",
    "a generator": "for n in endless() { }",
    "a generator that catches": "for n in catching() { }",
    "a sum": "range(1000000000000).sum()",
    "a count": "range(1000000000000).filter({ n -> false }).count()",
    "a reduction": "range(1000000000000).reduce(0, { a, n -> a + n })",
    "a search": "range(1000000000000).find({ n -> n < 0 })",
    "all of them": "range(1000000000000).all({ n -> true })",
    "the last of them": "range(1000000000000).skip_while({ n -> true }).last()",
    "many small ones": "range(1000000).flat_map({ n -> range(200) }).count()",
    "an iterator from outside": "outside.sum()",
    "a callback": "while true { many.map({ n -> n + 1 }) }",
    "a callback that computes": "many.map({ n -> range(1000000).sum() })",
    "a callback that builds": "many.each_slice(10).map({ n -> many.reverse() })",
    "sorting by a callback": "while true { many.sort_by({ n -> -n }) }",
    "sorting": "while true { many.map({ n -> -n }).sort() }",
    "sorting pairs": "while true { pairs.sort() }",
    "a set of lists": "lists.iter().to_set()",
    "the union of sets": "set(lists).union(set(lists.map({ n -> [n] })))",
    "a search among lists": "lists.map({ n -> lists.contains([-1]) })",
    "distinct lists": "while true { lists.unique() }",
    "joining": 'while true { many.join(", ") }',
    "dicts": 'while true { entries.map_values({ n -> n + 1 }).map_keys({ k -> k + "x" }) }',
    "a string that grows": 'var s = "" \n while true { s = s + "x" \n s.contains("y") }',
    "a regex": 'regex_match("(a|aa)+$", text + "b")',
    "another regex": 'regex_replace("(.*)(.*)(.*)(.*)[^a]", "x", text)',
    "many matches": 'while true { regex_split(text, "") }',
    "a template": 'render_string("{{ for n in x }}{{ n }}{{ end }}", {x: range(1000000000000)})',
    "loops in a template": "render_string(loops, {x: many})",
    "parsing": "while true { json_parse(json) }",
    "parsing what is wrong": 'while true { try { json_parse(json + "]") } catch (e) { } }',
    "a schema": "schema_is(1, doubled)",
    "a query": 'jq(lists, ".. == ..")',
    "busy children": "parallel 4 { while true { } }",
    "busy children of each": "parallel each many { n -> while true { try { again(n) } catch (e) { } } }",
    "busy children that settle": "parallel settle [1, 2] { n -> range(1000000000000).sum() }",
    "an awaited child": "await(spawn { while true { } })",
    "an awaited grandchild": "await(spawn { await(spawn { range(1000000000000).sum() }) })",
    "a race": "parallel_race([1, 2], { n -> while true { } })",
    "a stream": "stream.fold(stream.map(endless(), { n -> n }), 0, { a, n -> a + n })",
    "a channel": 'let c = channel("c", 1) \n spawn { while true { send(c, 1) } } \n for n in c { }',
    "waiting for nobody": 'receive(channel("empty", 1))',
    "sleeping": "while true { try { sleep(1h) } catch (e) { } }",
    "an agent": 'while true { agent_loop("go on", nil, {provider: "mock", max_iterations: 3}) }',
    "an agent that is never done": """agent_loop("go on", nil, {
  provider: "mock", max_iterations: 1000000000, max_nudges: 1000000000,
  persistent: true,
})""",
    "a workflow": 'while true { workflow_execute("go", graph) }',
    "model calls": 'while true { try { llm_call("hello", nil, {provider: "mock"}) } catch (e) { } }',
    "permutations": "fn all(n) { if n == 0 { return 1 } \n return all(n - 1) + all(n - 1) } \n all(200)",
    "random shuffles": "while true { random_shuffle(many) }",
    "statistics": "while true { median(many) }",
    "artifacts": "while true { many.window(100) }",
    "checkpoints": 'while true { try { checkpoint_get("none") } catch (e) { } }',
    "sub-agents": 'while true { sub_agent_run("go on", {provider: "mock", max_iterations: 2}) }',
    "merging": "while true { entries + entries }",
}


def setup_of(name: str) -> str:
    """Return what comes before the body of a program: what it uses, which takes little to make."""
    return "\n".join(text for used, text in _SETUP.items() if re.search(rf"\b({used})\b", PROGRAMS[name]))
