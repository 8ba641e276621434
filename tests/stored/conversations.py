"""The sessions of a generation: each one of `SessionRuntime`'s ways to write, and every type of event."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from harnpy.session import (
    AgentDef,
    ApprovalDenied,
    ApprovalGate,
    Artifact,
    Budget,
    ChildSpec,
    EventDraft,
    FileArtifactStore,
    HookStack,
    InputGate,
    Reply,
    ResizePolicy,
    Session,
    SessionRuntime,
    Waiting,
    actions,
    distill,
    drafts,
    export_run,
    metadata,
    turn,
)
from tests.stored.still import STILL

Message = dict[str, Any]

#: A PNG of one pixel.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
LONG_ID = "a long id " + "ä" * 190

CANTO = "\n".join(
    [
        '{"id":"01HZX0000000000000000000A1","session_id":"from-canto","type":"message_added",'
        '"timestamp":"2026-01-05T09:30:00.1Z","data":{"role":"user","content":"Hello from Canto"}}',
        '{"id":"01HZX0000000000000000000A2","session_id":"from-canto","type":"model_changed",'
        '"timestamp":"2026-01-05T09:30:01Z","data":{"provider_id":"mock","model":"small"}}',
        '{"id":"01HZX0000000000000000000A3","session_id":"from-canto","type":"custom_note",'
        '"timestamp":"2026-01-05T09:30:02Z","data":{"any":["thing",1,2.5,null]},"metadata":{"by":"canto"}}',
        '{"id":"01HZX0000000000000000000A4","session_id":"from-canto","type":"message_added",'
        '"timestamp":"2026-01-05T09:30:03Z","data":{"role":"assistant","content":"Hello"},"cost":0.0025}',
        "",
    ]
)
AGENTLY = """{"id": "from-agently", "auto_resize": false,
 "full_context": [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"},
                  {"role": "user", "content": "three"}],
 "context_window": [{"role": "user", "content": "three"}],
 "memo": {"facts": ["one", "two"]}, "session_settings": {"session": {"max_length": 4000}}}"""
COGNESY = """{"header": {"sessionId": "from-cognesy", "parentId": null, "status": "active", "version": 3,
  "agentName": "helper", "agentLabel": "Helper", "createdAt": "2026-01-05T09:30:00+00:00",
  "updatedAt": "2026-01-05T09:31:00+00:00"},
 "definition": {"name": "helper", "label": "Helper", "systemPrompt": "Help."},
 "state": {"agentId": "a1", "context": {"metadata": {"ticket": 7}, "systemPrompt": "Help.",
  "messageStore": {"sections": [{"name": "messages", "messages": [
   {"id": "m1", "createdAt": "2026-01-05T09:30:10+00:00", "role": "user", "content": "Who are you?"},
   {"id": "m2", "createdAt": "2026-01-05T09:30:20+00:00", "role": "assistant", "content": "A helper."}]}],
   "parameters": []}}, "executionCount": 1}}"""


def call(id: str, name: str, arguments: str) -> Message:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def write_all(url: str, directory: str) -> None:
    """Write every session of the runtime into a store; ``directory`` is where artifacts go."""
    with SessionRuntime(url, clock=STILL, ids=STILL, artifacts=_files(directory)) as runtime:
        for write in (
            every_type,
            kinds_of_messages,
            support,
            cuts,
            branches,
            forks,
            children,
            alone,
            imported,
            runs,
            long_log,
        ):
            write(runtime, directory)


def _files(directory: str) -> FileArtifactStore:
    return FileArtifactStore(os.path.join(directory, "artifacts"))


def every_type(runtime: SessionRuntime, directory: str) -> None:
    """One event of every type that an append takes, and one of a type that nobody knows."""
    session = runtime.create("writer", id="every-type")
    user = session.append(drafts.user("Do everything."))[0]
    session.append(drafts.context("The house style is brief.", "harness", "prefix"))
    with metadata(client="web"), turn("planning"):
        session.append(drafts.turn_started("writer", key="stage-1"))
        session.append(
            drafts.step_started(
                "writer", "small", iteration=1, provider="mock", prompt_cache={"prefix_hash": "sha256:0"}
            )
        )
        session.append(drafts.escalation_retried("writer", "model", 1, "timeout", target="small"))
        usage = {"input_tokens": 12, "output_tokens": 5, "total_tokens": 17}
        session.append(
            EventDraft(
                "step_completed",
                {
                    "agent_id": "writer",
                    "iteration": 1,
                    "usage": usage,
                    "reply": {"text": "", "stop_reason": "x"},
                },
                cost=0.00125,
            ),
            drafts.message(
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [call("c1", "write", '{"path":"a.txt"}'), call("c2", "read", "{}")],
                }
            ),
        )
        session.append(
            drafts.approval_requested("ap1", "every-type", "write", '{"path":"a.txt"}', category="file"),
            drafts.approval_resolved("ap1", "allow", "fine"),
            drafts.tool_started("write", '{"path":"a.txt"}', "c1", idempotency_key="k1"),
            drafts.tool_output_delta("write", "c1", "half"),
            drafts.tool_completed("write", "c1", "written", idempotency_key="k1", duration_ms=3),
            drafts.message({"role": "tool", "tool_call_id": "c1", "content": "written"}),
        )
        session.append(
            drafts.approval_requested("ap2", "every-type", "read", "{}"),
            drafts.approval_canceled("ap2", "read", "nobody there"),
            drafts.tool_completed("read", "c2", error="refused", rejected=True, error_category="policy"),
            drafts.message({"role": "tool", "tool_call_id": "c2", "content": "Error: refused"}),
        )
        session.append(drafts.external_input("Which colour?", "pending", request_id="r1"))
        session.append(drafts.wait_started("input", "r1"), drafts.wait_resolved("input", "r1"))
        session.append(drafts.external_input("Which colour?", "received", "blue", request_id="r1"))
        session.append(drafts.handoff("editor", "style", "the draft"))
        for child, end in (("ch1", "completed"), ("ch2", "failed"), ("ch3", "canceled")):
            session.append(
                drafts.child_requested(
                    child_id=child,
                    child_session_id=child,
                    agent_id="helper",
                    mode="fresh",
                    task="look",
                    metadata={"detached": True},
                ),
                drafts.child_started(child, child, "helper"),
                drafts.child_progressed(child, child, status="half", message="on it"),
                drafts.child_blocked(child, child, "no key"),
            )
            session.append(
                {
                    "completed": drafts.child_completed(child, child, "seen", artifact_ids=["art-0"]),
                    "failed": drafts.child_failed(child, child, "lost"),
                    "canceled": drafts.child_canceled(child, child, "no need"),
                }[end]
            )
        session.append(drafts.child_merged("ch1", "ch1", artifact_ids=["art-0"], note="taken in"))
        session.append(
            drafts.artifact_recorded({"id": "art-0", "kind": "text", "uri": "artifact:art-0"}, "ch1")
        )
        session.append(drafts.message({"role": "assistant", "content": "Done: blue."}))
        session.append(drafts.turn_completed("writer", 1, usage=usage, turn_stop_reason="completed"))
    session.append(drafts.compaction_started("llm", max_tokens=100, current_tokens=90))
    session.append(
        drafts.compaction_triggered(
            "manual",
            cutoff_event_id=session.leaf_id or "",
            entries=[
                {
                    "message": {
                        "role": "user",
                        "content": "<conversation_summary>\nBlue.\n</conversation_summary>",
                    },
                    "context_kind": "summary",
                    "placement": "prefix",
                }
            ],
            read_files=["b.txt"],
            modified_files=["a.txt"],
        )
    )
    session.append(
        EventDraft("store_repaired", {"dropped_bytes": 7, "dropped_events": 1, "detail": "a torn end"})
    )
    session.append(EventDraft("transcript_event", {"kind": "note", "role": "system", "text": "by hand"}))
    session.append(
        EventDraft("weather_changed", {"to": "rain", "$same": "kept as it is"}, {"source": "roof"})
    )
    session.append(drafts.message({"role": "user", "content": "Who wrote it?"}))
    session.append(drafts.leaf_moved(user.id))
    session.append(drafts.branch_summary("It was blue.", from_event_id=user.id, details={"n": 1}))
    session.wait_started("waitpoint", "wait-1")


def kinds_of_messages(runtime: SessionRuntime, directory: str) -> None:
    """Messages in the shapes that they come in."""
    image = {"type": "image", "mime_type": "image/png", "data": PIXEL}
    session = runtime.create("viewer", id="Messages/ÄÖ 1", system_prompt="Describe pictures.")
    session.append_user('What is this?  \t\u2028 \\ " 😀')
    session.append_message(
        {"role": "user", "content": "And this?", "parts": [{"type": "text", "text": "And this?"}, image]}
    )
    session.append_message(
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Looking."},
                {
                    "type": "tool_use",
                    "id": "t1",
                    "name": "zoom",
                    "input": {"x": 1, "deep": {"list": [1, 2.5, None, True]}},
                },
            ],
            "reasoning": "It is small.",
            "thinking_blocks": [
                {"type": "thinking", "thinking": "One pixel.", "signature": "c2lnbmVk"},
                {"type": "redacted_thinking", "signature": "aGlkZGVu"},
            ],
        }
    )
    session.append_message(
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "red"}]}
    )
    session.append_message(
        {
            "role": "assistant",
            "content": "A red pixel.",
            "name": "viewer",
            "cache_control": {"type": "ephemeral"},
        }
    )
    lenient = runtime.create(Session(LONG_ID))
    lenient.add_history([{"role": "user", "content": "An id of 200 characters."}])


def support(runtime: SessionRuntime, directory: str) -> None:
    """Actions, hooks, registers, statuses, agents that are functions, gates, artifacts."""
    stack = HookStack().with_(_stamp, priority=5)
    desk = SessionRuntime(runtime.store, hooks=stack, clock=STILL, ids=STILL)
    definition = AgentDef(
        "clerk", system_prompt="Be kind.", model="mock", tools=("track",), budget=Budget(max_cost=0.5)
    )
    session = desk.create(
        definition, id="support", seed={"content": "Where is my parcel?"}, metadata={"team": "ops"}
    )
    desk.bootstrap("support", cwd="/desk", files=["a.txt", "labels/"], tools=["print"])
    desk.execute("support", _answer, idempotency_key="mail-1")
    desk.execute("support", _answer, idempotency_key="mail-1")
    desk.execute("support", actions.WriteMetadata("priority", "high"))
    desk.execute("support", actions.UpdateTask("find the parcel"))
    desk.execute(
        "support",
        actions.UpdateTask(
            [{"content": "ask the carrier", "status": "in_progress"}, {"content": "call back"}]
        ),
    )
    desk.execute("support", actions.ChangeModel({"provider_id": "mock", "model": "small"}))
    desk.execute("support", actions.ChangeSystemPrompt("Be brief."))
    desk.execute("support", actions.Suspend("waiting for the carrier"))
    desk.execute("support", actions.Resume())
    session.set_memo({"customer": 42, "seen": [True, None, 1.5]})
    session.set_scratchpad({"tried": ["cache"]}, source="test", reason="first guess")
    session.clear_scratchpad()
    session.set_scratchpad({"tried": ["cache", "disk"]})
    session.set("settings.max_length", 12000)
    session.set("thinking", "high")
    session.set("tools", ["track", "refund"])
    desk.send("support", "When does it come?", agent=_clerk, idempotency_key="mail-2")
    gate = ApprovalGate(lambda request: ("deny", "ask the manager") if request.tool == "refund" else "allow")
    desk.send(
        "support", "My money!", agent=_refund, approvals=gate, inputs=InputGate(lambda prompt: "Friday")
    )
    desk.send("support", "Wait for me.", agent=_waits)
    with suppress(RuntimeError):
        desk.send("support", "Fail.", agent=_fails, idempotency_key="mail-3")
    session.store_artifact(_files(directory), Artifact(id="label-42", kind="pdf"), b"%PDF-1.7 ...\x00\xff")
    done = desk.create("clerk", id="done", seed={"content": "Thanks"})
    desk.execute("done", actions.Complete())
    failed = desk.create("clerk", id="failed", seed={"content": "No"})
    desk.execute("failed", actions.Fail("no parcel"))
    desk.create("clerk", id="deleted", seed={"content": "Forget me"})
    desk.delete("deleted")
    desk.create("clerk", id="gone", seed={"content": "I was never here"})
    desk.delete("gone", hard=True)
    desk.create("clerk", id="below", parent="support", label="a helper", auto_resize=False)
    assert [done.status, failed.status] == ["completed", "failed"]
    desk.close()


def _stamp(stage: str, session: Any) -> None:
    if stage == "before_save" and "by" not in session.metadata:
        session.set("metadata.by", "support desk")


def _answer(session: Any) -> None:
    session.append(EventDraft("message_added", {"role": "assistant", "content": "It arrives on Monday."}))
    session.set("metadata.answered", True)


def _clerk(messages: list[Message], turn: Any) -> Any:
    found = turn.tool("track", {"parcel": 42}, lambda args: {"at": "the station", "days": 1}, idempotent=True)
    with turn.step(model="small") as step:
        step.usage = {"input_tokens": 20, "output_tokens": 4, "total_tokens": 24}
        step.cost = 0.002
        yield f"It is at {found['at']}, "
        yield "and comes on Monday."


def _refund(messages: list[Message], turn: Any) -> Reply:
    day = turn.ask("Since when?")
    try:
        turn.tool("refund", {"since": day}, lambda args: "done")
    except ApprovalDenied as denied:
        return Reply(f"Not yet: {denied}.")
    raise AssertionError


def _waits(messages: list[Message]) -> str:
    raise Waiting("carrier", "parcel-42")


def _fails(messages: list[Message]) -> str:
    raise RuntimeError("the line is dead")


def cuts(runtime: SessionRuntime, directory: str) -> None:
    """Windows that became smaller: trims, compactions, resizes, resets, pins."""
    policy = ResizePolicy().strategy(
        "remember", lambda full, window, memo, settings: (None, window[-2:], {"n": 9})
    )
    desk = SessionRuntime(runtime.store, resize=policy, clock=STILL, ids=STILL)
    session = desk.create(id="cuts", auto_resize=False)
    session.set_history([{"content": "before the beginning"}])
    session.reset()
    for n in range(4):
        session.add_history([{"content": f"question {n}"}, {"role": "assistant", "content": f"answer {n}"}])
    questions = session.events(types=["message_added"], after=session.seq - 8)
    session.pin(questions[0].id)
    session.pin(questions[1].id)
    session.unpin(questions[1].id)
    session.trim(6)
    session.resize("llm", keep_last=3, summarize=lambda prompt: "They asked and answered.")
    session.resize("remember")
    session.resize("truncate", keep_last=1)
    session.add_history({"content": "and now?"})
    emptied = desk.create(id="emptied", seed=[{"content": "one"}, {"role": "assistant", "content": "two"}])
    emptied.clean_window()
    talk = desk.create(
        id="resized", seed=[{"content": f"a question of some length, number {n}"} for n in range(4)]
    )
    talk.set("settings.max_length", 150)
    talk.add_history({"content": "the last one"})
    desk.execute("resized", actions.Clear())
    offloaded = desk.create(id="offloaded", seed={"content": "List the files."})
    offloaded.add_history(
        [
            {"role": "assistant", "content": "", "tool_calls": [call("c1", "ls", "{}")]},
            {"role": "tool", "tool_call_id": "c1", "content": "file\n" * 60},
            {"role": "assistant", "content": "Sixty."},
            {"role": "user", "content": "Thanks."},
        ]
    )
    offloaded.resize("offload", keep_last=1, artifacts=_files(directory), tool_output_max_chars=40)
    desk.close()


def branches(runtime: SessionRuntime, directory: str) -> None:
    """Turns that were taken back, and branches of one log."""
    session = runtime.create("echo", id="branches")
    for n in range(4):
        runtime.send("branches", f"say {n}", agent=lambda messages: f"said {messages[-1]['content']}")
    session.rewind(2)
    session.redo()
    session.rewind(1)
    runtime.send("branches", "say it otherwise", agent=lambda messages: "otherwise")
    target = next(
        event for event in session.events(types=["message_added"]) if event.data["role"] == "assistant"
    )
    session.move_leaf(target.id, summary="That led nowhere.")
    session.append_user("From here.")


def forks(runtime: SessionRuntime, directory: str) -> None:
    """Forks, forks of forks, and forks whose parents are gone."""
    source = runtime.create("planner", id="plan", seed=[{"content": "goal"}], metadata={"of": "plan"})
    for n in range(3):
        source.add_history([{"role": "assistant", "content": f"idea {n}"}, {"content": f"and {n}?"}])
    source.set_memo({"plan": 1})
    source.fork("plan-b", at=4, label="b", reason="try").append_user("another road")
    deep = runtime.get("plan-b").fork("plan-c")
    deep.append_user("a third road")
    deep.trim(1)
    runtime.execute("plan", actions.Fork("plan-d"))
    source.append_user("the plan goes on")
    lost = runtime.create("planner", id="lost", seed=[{"content": "I will be deleted"}, {"content": "soon"}])
    lost.fork("orphan").append_user("without my parent")
    runtime.delete("lost", hard=True)


def children(runtime: SessionRuntime, directory: str) -> None:
    """Children of each mode and each end."""
    boss = runtime.create("boss", id="boss", seed={"content": "Look around."})
    spec = {"agent": lambda messages: f"Nothing in {messages[-1]['content'].splitlines()[-1]}."}
    done = runtime.run_child(
        "boss", ChildSpec(task="the cellar", context="it is dark", child_id="cellar", **spec)
    )
    runtime.progress_child("boss", "cellar", "seen it", status="late") if done.status == "running" else None
    runtime.merge_child("boss", "cellar", note="the cellar is empty", artifact_ids=[])
    runtime.run_child(
        "boss", ChildSpec(mode="fork", task="the attic", child_id="attic", session_id="attic-1", **spec)
    )
    runtime.run_child(
        "boss",
        ChildSpec(
            mode="fresh",
            child_id="shed",
            messages=[{"role": "user", "content": "shed"}],
            metadata={"far": True},
            **spec,
        ),
    )
    for id, agent in (("blocked", _waits), ("broken", _fails)):
        with suppress(RuntimeError):
            runtime.run_child("boss", ChildSpec(task=id, child_id=id, agent=agent))
    boss.append_user("That is all.")


def alone(runtime: SessionRuntime, directory: str) -> None:
    """A session that was made without a store, and stored whole."""
    draft = Session("draft", auto_resize=False, settings={"max_length": 900})
    draft.add_history([{"content": "Where?"}, {"role": "assistant", "content": "There."}])
    draft.set_memo("a text")
    draft.set_task("the task")
    runtime.create(draft)


def imported(runtime: SessionRuntime, directory: str) -> None:
    """Sessions of other systems."""
    runtime.import_(CANTO, format="canto")
    runtime.save_ancestry({"session_id": "from-canto", "depth": 0, "created_at": "2026-01-05T09:00:00Z"})
    runtime.save_ancestry({"session_id": "ancestor-only", "depth": 0, "created_at": "2026-01-05T09:00:00Z"})
    runtime.import_(AGENTLY, format="agently-json")
    runtime.import_(COGNESY, format="cognesy")
    runtime.import_(runtime.export("plan-b"), format="jsonl", id="plan-b again")


def runs(runtime: SessionRuntime, directory: str) -> None:
    """What an agent did, and what is worth remembering of it."""
    session = runtime.create("adder", id="sums")

    def adder(messages: list[Message], turn: Any) -> Any:
        with turn.step(model="small") as step:
            step.usage = {"input_tokens": 9, "output_tokens": 2}
        yield {"role": "assistant", "content": "", "tool_calls": [call("c1", "add", "[2,2]")]}
        found = turn.tool("add", [2, 2], sum, call_id="c1")
        yield {"role": "tool", "tool_call_id": "c1", "content": str(found)}
        yield f"It is {found}."

    runtime.send("sums", "2 + 2?", agent=adder)
    runtime.save_episode(distill(export_run(session)))
    runtime.send("sums", "Again?", agent=lambda messages: "Four.")
    runtime.save_episode(distill(export_run(session)))


def long_log(runtime: SessionRuntime, directory: str) -> None:
    """A log with projection snapshots: one by itself, one by hand; and cuts behind them."""
    session = runtime.create("echo", id="long")
    for n in range(46):
        session.append_user(f"{n}")
    runtime.send("long", "Well?", agent=lambda messages: f"{len(messages)} messages")
    session.trim(5)
    runtime.send("long", "one more", agent=lambda messages: "yes")
    session.snapshot()
    session.append_user("behind the snapshot")


def unfinished(url: str) -> None:
    """Begin a turn that this process never ends: run in a process of its own, which dies in the middle."""
    runtime = SessionRuntime(url, clock=STILL, ids=STILL)
    runtime.create("hotel", id="unfinished", seed={"content": "A room, please."})
    runtime.send("unfinished", "For two nights.", agent=_dies, idempotency_key="mail-17")


def _dies(messages: list[Message], turn: Any) -> Any:
    turn.tool("book", {"nights": 2}, lambda args: "room 7", idempotent=True)
    yield {"role": "assistant", "content": "You have room 7."}
    turn.tool("pay", {"euros": 120}, lambda args: os._exit(9))
