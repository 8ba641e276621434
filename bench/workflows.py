"""What does a stage of a workflow cost, beside the model, and does it cost more in a larger workflow?

    python bench/workflows.py [--rounds N] [--stages N] [--check]

200 stages one after the other, each a call of a model that replies at once and is shown the artifact of the
stage before; and 200 in one map, 20 at a time. The run record goes to a file in memory (`/dev/shm`).
LangGraph does the same with nodes of a graph, `Send` and an `InMemorySaver`, without a file. A row is the
median of the rounds; sides and sizes take turns, in one process. Then the same map with a model that takes
50 ms, against the time that its calls alone take.
"""

from __future__ import annotations

import asyncio
import gc
import operator
import os
from collections.abc import Callable
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Annotated, Any, TypedDict

from options import parser

from harnpy import Vm

FEW, WIDTH = 20, 20
LATENCY = 0.05
#: A map with a slow model against its calls alone.
OVERHEAD = 1.5
#: A stage among 200 against one among 20.
GROWTH = 1.5
ANSWER = "Fine, thank you."
SOURCE = """
fn models_say(provider) {
  if provider == "mock" {
    llm_mock({match: "*", text: "Fine, thank you."})
  }
}

fn stage(provider) {
  return {
    model_policy: {provider: provider, model: "m"},
    context_policy: {max_artifacts: 1, prefer_recent: true},
  }
}

fn chain(count, path, provider) {
  models_say(provider)
  var nodes = {}
  var edges = []
  for i in range(count) {
    nodes = nodes + {["s${i}"]: stage(provider)}
    if i > 0 {
      edges = edges.push({from: "s${i - 1}", to: "s${i}"})
    }
  }
  let graph = workflow_graph({entry: "s0", nodes: nodes, edges: edges})
  return { -> len(workflow_execute("Go on", graph, [], {persist_path: path}).run.stages) }
}

fn fan(count, path, provider) {
  models_say(provider)
  let items = range(count).iter().map({ i -> "item ${i}" }).to_list()
  let policy = {items: items, max_concurrent: 20, output_kind: "made"}
  let each = stage(provider) + {kind: "map", map_policy: policy}
  let graph = workflow_graph({entry: "each", nodes: {each: each}})
  return { -> len(workflow_execute("Go on", graph, [], {persist_path: path}).artifacts) }
}

pipeline main(task) {
  {chain: chain, fan: fan}
}
"""


def seconds(run: Callable[[], Any], expected: int) -> float:
    gc.collect()
    begin = perf_counter()
    made = run()
    taken = perf_counter() - begin
    if made != expected:
        raise AssertionError(f"{made} of {expected} were made")
    return taken


class Harnpy:
    """`workflow_execute`, its graph made before."""

    name = "harnpy"

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def measure(self, shape: str, count: int, provider: str = "mock") -> float:
        vm = Vm()
        vm.provide("slow", Slow())
        functions = vm.run_source(SOURCE)
        run = vm.call(functions[shape], count, os.path.join(self._directory, "run.json"), provider)
        return seconds(lambda: vm.call(run), count)


class Slow:
    """A model that takes its time."""

    async def complete(self, request: Any) -> Any:
        from harnpy.llm.reply import Reply

        await asyncio.sleep(LATENCY)
        return Reply(ANSWER, request.model, "slow", request.model, 10, 5)


class LangGraph:
    """A `StateGraph` with an `InMemorySaver`."""

    name = "LangGraph"

    def measure(self, shape: str, count: int) -> float:
        graph = self._chain(count) if shape == "chain" else self._fan(count)
        config: Any = {
            "configurable": {"thread_id": "t"},
            "recursion_limit": count + 5,
            "max_concurrency": WIDTH,
        }
        made = lambda: len(asyncio.run(graph.ainvoke({"texts": []}, config))["texts"])  # noqa: E731
        return seconds(made, count)

    def _chain(self, count: int) -> Any:
        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph.graph import START, StateGraph

        graph: Any = StateGraph(_State)
        for number in range(count):
            graph.add_node(f"s{number}", _answer)
            graph.add_edge(f"s{number - 1}" if number else START, f"s{number}")
        return graph.compile(checkpointer=InMemorySaver())

    def _fan(self, count: int) -> Any:
        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph.graph import START, StateGraph
        from langgraph.types import Send

        graph: Any = StateGraph(_State)
        graph.add_node("each", _answer)
        graph.add_conditional_edges(START, lambda state: [Send("each", {"texts": []}) for _ in range(count)])
        return graph.compile(checkpointer=InMemorySaver())


class _State(TypedDict):
    texts: Annotated[list[str], operator.add]


async def _answer(state: _State) -> Any:
    return {"texts": [ANSWER]}


def sides(directory: str) -> list[Any]:
    found: list[Any] = [Harnpy(directory)]
    try:
        LangGraph().measure("chain", 1)
    except ImportError as error:
        print(f"LangGraph is left out: pip install langgraph ({error})")
    else:
        found.append(LangGraph())
    return found


def main() -> None:
    arguments = parser(__doc__, rounds=5)
    arguments.add_argument("--stages", type=int, default=200, help="of a large workflow")
    options = arguments.parse_args()
    stages, met = options.stages, True
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with TemporaryDirectory(dir=memory) as directory:
        present = sides(directory)
        for shape, title in (("chain", "one after the other"), ("fan", f"in a map, {WIDTH} at a time")):
            print(f"\nstages {title}: us a stage")
            for side in present:
                side.measure(shape, FEW)  # imports, caches
            taken: dict[str, list[tuple[float, float]]] = {side.name: [] for side in present}
            for _ in range(options.rounds):
                for side in present:
                    few, many = side.measure(shape, FEW) / FEW, side.measure(shape, stages) / stages
                    taken[side.name].append((few, many))
            for name, pairs in taken.items():
                few, many = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
                growth = median(pair[1] / pair[0] for pair in pairs)
                costs = f"{stages}: {many * 1e6:>8,.0f}   {FEW}: {few * 1e6:>8,.0f}"
                print(f"  {name:<12} {costs}   × {growth:.2f}")
                met &= name != Harnpy.name or growth < GROWTH
        ideal = stages / WIDTH * LATENCY
        ratios = [Harnpy(directory).measure("fan", stages, "slow") / ideal for _ in range(options.rounds)]
        title = f"{stages} in a map, {WIDTH} at a time, {LATENCY * 1000:.0f} ms a call"
        print(f"\n{title}: × {median(ratios):.2f} ideal")
        met &= median(ratios) < OVERHEAD
    if options.check and not met:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
