"""What the screens show: a project with programs, sessions, runs and tokens, the same each time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, redirect_stdout
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any

from harnpy.cli.commands.doctor import Finding
from harnpy.cli.main import main
from harnpy.serve.server import Place
from harnpy.session.events import EventDraft
from harnpy.session.stored import StoredSession
from harnpy.storage import open_store
from harnpy.workflow.records import record_files
from harnpy.world import World
from tests.worlds import world_with

#: Where the sessions are kept.
STORE = "sqlite:sessions.db"

FILES = {
    "wrong.harn": (
        "fn area(w, h) { return w * h }\n\n"
        "pipeline main() {\n"
        '  let 名前 = "日本語のとても長い文字列です" + area(3)\n'
        "  println(nmae, area(1))\n"
        "}\n"
    ),
    "untidy.harn": (
        "fn total(xs) {\n  let unused=1\n  xs.map({ x -> x * 2 })\n  if xs.count == 0 { return true } "
        "else { return false }\n}\n\npipeline main() {\n  println(total([1, 2, 3]))\n}\n"
    ),
    "fine.harn": (
        "fn fib(n) {\n  if n < 2 { return n }\n  return fib(n - 1) + fib(n - 2)\n}\n\n"
        "pipeline main() {\n  println(fib(12))\n}\n"
    ),
    "tests/test_fine.harn": (
        'import "../lib/prices"\n\n'
        "pipeline test_total_of_an_order(t) { assert_eq(total([2, 3]), 5) }\n\n"
        "pipeline test_nothing(t) { assert_eq(total([]), 0) }\n"
    ),
    "lib/prices.harn": (
        "fn total(prices) {\n  if prices.count > 100 {\n    return 0\n  }\n  return prices.sum() ?? 0\n}\n"
    ),
    "failing/test_broken.harn": (
        'pipeline test_short(t) { assert_eq({id: 7, name: "日本"}, {id: "7", name: "日本"}) }\n\n'
        "pipeline test_nested(t) {\n"
        '  println("looking for order 7")\n'
        '  let found = {id: 7, customer: {name: "Ada King", city: "Bath"}, items: ["apple", "fig", "pear"]}\n'
        '  let wanted = {id: 7, customer: {name: "Ada King", city: "York"}, items: ["apple", "fig"]}\n'
        "  assert_eq(found, wanted)\n}\n\n"
        'pipeline test_thrown(t) { throw "the printer is on fire" }\n\n'
        "pipeline test_passes(t) { assert(true) }\n"
    ),
    "graph.harn": (
        'pipeline main() {\n  let graph = workflow_graph({name: "report", nodes: {plan: {kind: "stage"}, '
        'write: {kind: "stage"}}, edges: [{from: "plan", to: "write"}], entry: "plan"})\n'
        "  println(graph)\n}\n"
    ),
    "shop/harn.toml": '[package]\nname = "shop"\n\n[llm]\nprovider = "ollama"\n\n'
    '[[hooks]]\nevent = "PreToolUse"\n'
    'pattern = "*"\nhandler = "hooks::check"\n',
    "shop/main.harn": 'println("open")\n',
}


EXTRAS = (
    "acp",
    "azure",
    "bedrock",
    "claude-agent-sdk",
    "dbos",
    "import",
    "langgraph",
    "otel",
    "postgres",
    "vertex",
)


class Steps:
    """A clock that goes on by a step at each look."""

    def __init__(self, step: float) -> None:
        self._step = step
        self._looks = count(1)

    def __call__(self) -> float:
        return next(self._looks) * self._step


class Ids:
    """UUIDs that count upward."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self) -> str:
        return f"0190aaaa-0000-7000-8000-{next(self._numbers):012x}"

    def bytes(self, count: int) -> bytes:
        """What is the same in each run, where chance would be."""
        return next(self._numbers).to_bytes(count, "big")


def stage(id: str, node: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "node_id": node, "kind": "stage", "status": "completed", "outcome": "success", **more}


RUN: dict[str, Any] = {
    "id": "run-1",
    "workflow_id": "report",
    "workflow_name": "Quarterly report for the board of directors",
    "status": "completed",
    "task": "Write the quarterly report and have it checked by two people",
    "stages": [
        stage("s1", "plan", branch="success", visible_text="Three chapters: sales, costs, outlook."),
        stage("s2", "write", visible_text="日本語の報告書" * 6),
        stage("s3", "check", status="failed", outcome="error"),
    ],
    "transitions": [
        {"to_node_id": "plan"},
        {"from_node_id": "plan", "to_node_id": "write"},
        {"from_node_id": "write", "to_node_id": "check", "branch": "success"},
    ],
    "usage": {"total_cost": 0.01234, "input_tokens": 12000, "output_tokens": 800},
    "started_at": "2026-01-01T00:00:00.000Z",
    "finished_at": "2026-01-01T00:02:02.500Z",
}


#: What `harnpy doctor` finds: on each machine something else.
FINDINGS = [
    Finding("OK", "harnpy", "0.1.0 in /usr/lib/python3/site-packages/harnpy"),
    Finding("OK", "extras", "installed: anthropic, mcp, openai, serve; not installed: " + ", ".join(EXTRAS)),
    Finding(
        "WARN",
        "model",
        "none is configured: calls go to ollama, which needs no key, at http://localhost:11434",
        ["export ANTHROPIC_API_KEY=KEY", "or, without a model: export HARN_LLM_PROVIDER=mock"],
    ),
    Finding("OK", "keys", "none"),
    Finding("FAIL", "store", "jsonl:/srv/data/an-application-with-a-long-name/sessions: no such folder"),
]


async def served(
    options: Any, output: Any, bind: Any, on_ready: Callable[[Place], object], leave: Any
) -> None:
    """A server that is ready, and ends."""
    on_ready(Place(STORE, "http://127.0.0.1:8787", "http://127.0.0.1:8787/sign-in/9zXk2mQ4vB7nR1tY"))


def build(directory: Path) -> None:
    """Make the project in a directory, which is the working one."""
    for name, text in FILES.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    with closing(open_store(STORE)) as store:
        talk = StoredSession.begin("talk", store, World())
        for number in range(3):
            talk.append(
                said("user", f"Question {number}: how do we deploy the service to three regions at once?")
            )
            talk.append(said("assistant", f"Answer {number}.\n\n1. Build\n2. 日本語のレビュー\n3. Deploy 🎉"))
        talk.shrink("trim", talk.view.window.trimmed(2))
        talk.fork("another-road").append(said("user", "And if one region is down?"))
        long = StoredSession.begin("a-session-with-a-name-that-is-rather-long-0001", store, World())
        long.append(said("user", "短い質問です" * 12))
    with redirect_stdout(StringIO()):
        main(["tokens", "create", "ada@example.org", "--scope", "write", "--requests-per-minute", "60"])
        main(
            ["tokens", "create", "a-service-with-a-name-that-is-rather-long", "--scope", "all", "--days", "7"]
        )
    world = world_with(cwd=lambda: str(directory))
    record_files.save_run(RUN, world, ".harn-runs/run-1.json")
    record_files.save_run(
        RUN | {"id": "run-2", "status": "running", "workflow_name": "Shop"}, world, ".harn-runs/run-2.json"
    )


def said(role: str, content: str) -> EventDraft:
    return EventDraft("message_added", {"role": role, "content": content})
