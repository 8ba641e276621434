"""What does a turn of an agent cost, beside the model?

    python bench/agents.py [--rounds N] [--turns N] [--check]

Every side holds one conversation of 200 turns with a model that replies at once, in memory, through its
library's own public API: once with plain replies, once with a tool call in every turn (two model calls and
a Python function). Sides take turns, in one process; a row is the median of the rounds. Then: what the
1,000th turn costs against the 100th, and how long 200 loops at once take with a model that takes 50 ms.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from statistics import median
from time import perf_counter
from typing import Any

from options import parser, peers_first

from harnpy import Vm

PROMPT = "How are you today?"
ANSWER = "Fine, thank you."
#: At least so many times the turns per second of the best peer.
MUST = 10.0
#: A late turn against the 100th, and concurrent loops against the ideal time.
GROWTH, CONCURRENCY = 1.5, 1.5
LATENCY = 0.05


class Side:
    """One library. `converse` returns the seconds of each turn."""

    name: str

    async def converse(self, turns: int, tools: bool) -> list[float]:
        raise NotImplementedError


class Harnpy(Side):
    """A Harn function that runs `agent_loop` on a session, called once a turn."""

    name = "harnpy"
    source = """
    var registry = tool_registry()
    registry = tool_define(registry, "add", "Add two numbers", {
      parameters: {a: "int", b: "int"},
      handler: { args -> args.a + args.b },
    })
    fn plain(prompt, answer) {
      llm_mock({text: answer, input_tokens: 10})
      return agent_loop(prompt, nil, {provider: "mock", session_id: "chat"}).visible_text
    }
    fn with_tool(prompt, answer) {
      llm_mock({tool_calls: [{name: "add", arguments: {a: 1, b: 2}}], input_tokens: 10})
      llm_mock({text: answer, input_tokens: 10})
      let options = {provider: "mock", session_id: "chat", tools: registry, tool_format: "native"}
      return agent_loop(prompt, nil, options).visible_text
    }
    {plain: plain, with_tool: with_tool}
    """

    async def converse(self, turns: int, tools: bool) -> list[float]:
        vm = Vm()
        functions = vm.run_source(f"pipeline main(task) {{ {self.source} }}")
        turn = functions["with_tool" if tools else "plain"]
        return timed(turns, lambda: vm.call(turn, PROMPT, ANSWER))


def timed(turns: int, turn: Callable[[], Any]) -> list[float]:
    marks = []
    for _ in range(turns):
        begin = perf_counter()
        if turn() != ANSWER:
            raise AssertionError("the turn went wrong")
        marks.append(perf_counter() - begin)
    return marks


async def timed_async(turns: int, turn: Callable[[], Awaitable[Any]]) -> list[float]:
    marks = []
    for _ in range(turns):
        begin = perf_counter()
        if await turn() != ANSWER:
            raise AssertionError("the turn went wrong")
        marks.append(perf_counter() - begin)
    return marks


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class OpenAIAgents(Side):
    """`Runner.run` with a `SQLiteSession` in memory; tracing is off."""

    name = "OpenAI Agents SDK"

    async def converse(self, turns: int, tools: bool) -> list[float]:
        with peers_first():
            from agents import (
                Agent,
                Model,
                ModelResponse,
                Runner,
                SQLiteSession,
                Usage,
                function_tool,
                set_tracing_disabled,
            )
        from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

        set_tracing_disabled(True)

        class Scripted(Model):
            called = True

            async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
                self.called = not self.called
                if tools and not self.called:
                    call = ResponseFunctionToolCall(
                        arguments='{"a":1,"b":2}', call_id="call_1", name="add", type="function_call"
                    )
                    return ModelResponse(output=[call], usage=Usage(), response_id=None)
                text = ResponseOutputText(annotations=[], text=ANSWER, type="output_text")
                message = ResponseOutputMessage(
                    id="m", content=[text], role="assistant", status="completed", type="message"
                )
                return ModelResponse(output=[message], usage=Usage(), response_id=None)

            def stream_response(self, *args: Any, **options: Any) -> Any:
                raise NotImplementedError

        agent = Agent(name="a", model=Scripted(), tools=[function_tool(add)] if tools else [])
        session = SQLiteSession("chat")

        async def turn() -> Any:
            return (await Runner.run(agent, PROMPT, session=session)).final_output

        try:
            return await timed_async(turns, turn)
        finally:
            session.close()


class PydanticAI(Side):
    """`Agent.run` with a `FunctionModel`, given the messages of the run before."""

    name = "pydantic-ai"

    async def converse(self, turns: int, tools: bool) -> list[float]:
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
        from pydantic_ai.models.function import AgentInfo, FunctionModel

        called = True

        def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            nonlocal called
            called = not called
            if tools and not called:
                return ModelResponse(parts=[ToolCallPart("add", {"a": 1, "b": 2})])
            return ModelResponse(parts=[TextPart(ANSWER)])

        agent = Agent(FunctionModel(answer), tools=[add] if tools else [])
        history: list[ModelMessage] = []

        async def turn() -> Any:
            nonlocal history
            result = await agent.run(PROMPT, message_history=history)
            history = result.all_messages()
            return result.output

        return await timed_async(turns, turn)


class LangGraph(Side):
    """A graph of a model node and a `ToolNode`, with an `InMemorySaver`."""

    name = "LangGraph"

    async def converse(self, turns: int, tools: bool) -> list[float]:
        from langchain_core.messages import AIMessage, HumanMessage
        from langchain_core.tools import tool
        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph.graph import START, MessagesState, StateGraph
        from langgraph.prebuilt import ToolNode, tools_condition

        called = True

        async def model(state: MessagesState) -> Any:
            nonlocal called
            called = not called
            if tools and not called:
                call = {"name": "add", "args": {"a": 1, "b": 2}, "id": "call_1", "type": "tool_call"}
                return {"messages": [AIMessage(content="", tool_calls=[call])]}
            return {"messages": [AIMessage(content=ANSWER)]}

        graph: Any = StateGraph(MessagesState)
        graph.add_node("model", model)
        graph.add_edge(START, "model")
        if tools:
            graph.add_node("tools", ToolNode([tool(add)]))
            graph.add_conditional_edges("model", tools_condition)
            graph.add_edge("tools", "model")
        runnable = graph.compile(checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": "chat"}}

        async def turn() -> Any:
            state = await runnable.ainvoke({"messages": [HumanMessage(PROMPT)]}, config)
            return state["messages"][-1].content

        return await timed_async(turns, turn)


#: The peers, and the package that each comes in.
PEERS: list[tuple[str, type[Side]]] = [
    ("openai-agents", OpenAIAgents),
    ("pydantic-ai-slim", PydanticAI),
    ("langgraph", LangGraph),
]


async def present() -> list[Side]:
    """The peers that are installed and work; a line for each that doesn't."""
    found: list[Side] = []
    for package, make in PEERS:
        side = make()
        try:
            await side.converse(1, tools=True)
        except ImportError as error:
            print(f"{side.name} is left out: pip install {package} ({error})")
        else:
            found.append(side)
    return found


async def conversations(rounds: int, turns: int) -> bool:
    """Turns per second, and whether ours are `MUST` times the best peer's."""
    ours, peers = Harnpy(), await present()
    met = True
    for tools, title in ((False, "plain answers"), (True, "a tool call a turn")):
        rates: dict[str, list[float]] = {side.name: [] for side in (ours, *peers)}
        for _ in range(rounds):
            for side in (ours, *peers):
                gc.collect()
                rates[side.name].append(turns / sum(await side.converse(turns, tools)))
        medians = {name: median(values) for name, values in rates.items()}
        print(f"\n{turns} turns, {title}: turns/s")
        for name, rate in medians.items():
            print(f"  {name:<20} {rate:>8,.0f}   harnpy × {medians[ours.name] / rate:.1f}")
        best = max(medians[side.name] for side in peers) if peers else 0.0
        met &= medians[ours.name] >= MUST * best
    return met


async def growth(rounds: int, late: int) -> bool:
    """A late turn against the 100th."""
    met = True
    for tools, title in ((False, "plain"), (True, "with a tool")):
        ratios = []
        for _ in range(rounds):
            gc.collect()
            marks = await Harnpy().converse(late + 50, tools)
            ratios.append(median(marks[late - 50 :]) / median(marks[50:150]))
        print(f"turn {late:,} / turn 100, {title}: {median(ratios):.2f}")
        met &= median(ratios) < GROWTH
    return met


class Slow:
    """A model that takes its time."""

    async def complete(self, request: Any) -> Any:
        from harnpy.llm.reply import Reply

        await asyncio.sleep(LATENCY)
        return Reply(ANSWER, request.model, "slow", request.model, 10, 5)


def concurrent(rounds: int, loops: int, turns: int) -> float:
    """Loops at once against a slow model, as a multiple of the time that the model takes."""
    source = f"""
    pipeline main(task) {{
      fn talk(n) {{
        let options = {{provider: "slow", model: "m", persistent: true, max_iterations: {turns}}}
        let results = parallel {loops} {{ i -> agent_loop("Hello", nil, options).llm.iterations }}
        return len(results.filter({{ made -> made == {turns} }}))
      }}
      talk
    }}
    """
    ratios = []
    for _ in range(rounds + 1):
        vm = Vm()
        vm.provide("slow", Slow())
        talk = vm.run_source(source)
        gc.collect()
        begin = perf_counter()
        made = vm.call(talk, 0)
        ratios.append((perf_counter() - begin) / (LATENCY * turns))
        if made != loops:
            raise AssertionError(f"{made} of {loops} loops made all their turns")
    ratio = median(ratios[1:])  # the first run imports what the others have
    print(f"{loops} loops at once, {turns} turn(s) each, {LATENCY * 1000:.0f} ms a call: × {ratio:.2f} ideal")
    return ratio


def main() -> None:
    arguments = parser(__doc__, rounds=5)
    arguments.add_argument("--turns", type=int, default=200, help="how many turns a conversation has")
    arguments.add_argument("--late", type=int, default=1000, help="which turn is held against the 100th")
    arguments.add_argument("--loops", type=int, default=200, help="how many loops run at once")
    options = arguments.parse_args()
    met = asyncio.run(conversations(options.rounds, options.turns))
    print()
    met &= asyncio.run(growth(options.rounds, options.late))
    concurrent(options.rounds, options.loops, turns=1)
    met &= concurrent(options.rounds, options.loops, turns=5) < CONCURRENCY
    if options.check and not met:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
