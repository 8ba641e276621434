"""Workers as a host meets them: snapshots in files, `worker_update` events, hooks (07 §11.3, §9.2, §8.4)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm
from harnpy.vm.errors import VmError
from tests.worlds import OwnWorld

pytestmark = pytest.mark.usefixtures("clock")

NODE = '{id: "n", model_policy: {provider: "mock"}}'


class DirectoryHost(OwnWorld):
    """The real world, in a directory and with an environment of its own."""

    def __init__(self, directory: Path, **env: str) -> None:
        self.printed: list[str] = []
        self.warnings: list[str] = []
        super().__init__(stdout=self.printed.append, stderr=self.warnings.append)
        self.directory = directory
        self.variables = {"HARN_LLM_PROVIDER": "mock", **env}

    def cwd(self) -> str:
        return str(self.directory)

    def get(self, name: str) -> str | None:
        return self.variables.get(name)


@pytest.fixture
def host(tmp_path: Path) -> DirectoryHost:
    return DirectoryHost(tmp_path)


def run(host: DirectoryHost, body: str) -> Any:
    """What a pipeline with that body answers, in a Vm of its own."""
    return Vm(host).run_source(f"pipeline main(task) {{\n{body}\n}}")


def snapshot(path: str) -> Any:
    return json.loads(Path(path).read_text())


# Snapshots.


def test_a_snapshot_is_written_at_once_and_again_at_the_end(host: DirectoryHost) -> None:
    first, last = run(
        host,
        f"""
        let h = spawn_agent({{task: "t", node: {NODE}}})
        return [h, wait_agent(h)]
        """,
    )
    path = host.directory / ".harn" / "workers" / f"{last['id']}.json"
    assert first["snapshot_path"] == last["snapshot_path"] == str(path)
    assert last["provenance"]["snapshot_path"] == str(path)
    kept = snapshot(str(path))
    assert kept | {"_type": "agent_handle"} == kept | last
    assert kept["_type"] == "worker_snapshot"
    assert (kept["latest_payload"], kept["latest_error"]) == (last["result"], None)
    assert kept["transcript"] == last["result"]["transcript"]
    assert kept["artifacts"] == last["result"]["artifacts"]
    assert kept["config"]["node"]["id"] == "n"
    assert kept["carry_policy"] == {
        "transcript_mode": "inherit",
        "artifact_mode": "inherit",
        "context_policy": None,
        "resume_workflow": True,
        "persist_state": True,
        "retriggerable": False,
    }


def test_the_file_follows_every_change(host: DirectoryHost) -> None:
    seen: list[tuple[str, str]] = []
    vm = Vm(host)

    def look(payload: dict[str, Any]) -> None:
        kept = snapshot(payload["worker"]["metadata"]["provenance"]["snapshot_path"])
        seen.append((payload["event"], kept["status"]))

    for event in ("WorkerSpawned", "WorkerProgressed", "WorkerCompleted", "WorkerCancelled"):
        vm.hook(event, look)
    vm.run_source(
        f"""
        let h = wait_agent(spawn_agent({{task: "t", node: {NODE}}}))
        wait_agent(send_input(h, "more"))
        close_agent(h)
        """
    )
    assert seen == [
        ("WorkerSpawned", "running"),
        ("WorkerCompleted", "completed"),
        ("WorkerProgressed", "running"),
        ("WorkerCompleted", "completed"),
        ("WorkerCancelled", "cancelled"),
    ]


@pytest.mark.parametrize(
    ("env", "directory"),
    [
        ({"HARN_WORKER_STATE_DIR": "w"}, "w"),
        ({"HARN_WORKER_STATE_DIR": "w", "HARN_STATE_DIR": "s"}, "w"),
        ({"HARN_WORKER_STATE_DIR": " ", "HARN_STATE_DIR": "s"}, "s/workers"),
        ({}, ".harn/workers"),
    ],
)
def test_the_environment_says_where(tmp_path: Path, env: dict[str, str], directory: str) -> None:
    run(DirectoryHost(tmp_path, **env), f'spawn_agent({{task: "t", wait: true, node: {NODE}}})')
    assert len(list((tmp_path / directory).glob("worker_*.json"))) == 1


def test_nothing_is_written_without_persistence(host: DirectoryHost) -> None:
    run(host, f'spawn_agent({{task: "t", wait: true, node: {NODE}, carry: {{persist_state: false}}}})')
    assert list(host.directory.iterdir()) == []


def test_functions_are_left_out(host: DirectoryHost) -> None:
    handle = run(
        host,
        """
        let reg = tool_define(tool_registry(), "look", "Looks.", {parameters: {}, handler: { args -> 1 }})
        let policy = {max_iterations: 1, post_turn_callback: { turn -> nil }}
        return spawn_agent({task: "t", wait: true, node: {tools: reg, model_policy: policy}})
        """,
    )
    node = snapshot(handle["snapshot_path"])["config"]["node"]
    assert node["model_policy"]["max_iterations"] == 1
    assert "post_turn_callback" not in node["model_policy"]
    assert [(tool["name"], "handler" in tool) for tool in node["tools"]["tools"]] == [("look", False)]


def test_a_directory_that_cant_be_written_refuses_the_worker(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    host = DirectoryHost(tmp_path, HARN_WORKER_STATE_DIR="file")
    with pytest.raises(VmError, match=r"failed to write worker snapshot '.*worker_.*json'"):
        run(host, f'spawn_agent({{task: "t", node: {NODE}}})')


def test_a_snapshot_that_cant_be_written_later_is_a_warning(host: DirectoryHost) -> None:
    def spoil(payload: dict[str, Any]) -> None:
        path = Path(payload["worker"]["metadata"]["provenance"]["snapshot_path"])
        path.unlink()
        path.mkdir()

    vm = Vm(host)
    vm.hook("WorkerSpawned", spoil)
    vm.run_source(f'wait_agent(spawn_agent({{task: "t", node: {NODE}}}))')
    assert "agent.worker: failed to write worker snapshot" in "".join(host.warnings)


# Coming back.


def spawned(host: DirectoryHost, extra: str = "") -> Any:
    return run(host, f'return wait_agent(spawn_agent({{task: "first", name: "w", node: {NODE}{extra}}}))')


def test_a_snapshot_comes_back_by_id_and_by_path(host: DirectoryHost) -> None:
    old = spawned(host)
    for name in (old["id"], old["snapshot_path"], f".harn/workers/{old['id']}.json"):
        resumed = run(host, f'return [resume_agent("{name}"), list_agents()]')
        assert resumed == [old, [old]]


def test_a_resumed_worker_goes_on_with_its_conversation(host: DirectoryHost) -> None:
    old = spawned(host, ', carry: {artifacts: "none"}')
    new, calls = run(
        host,
        f"""
        let h = resume_agent("{old["id"]}")
        let d = wait_agent(send_input(h, "second"))
        return [d, llm_mock_calls()]
        """,
    )
    assert (new["status"], new["history"], new["request"]["task"]) == (
        "completed",
        ["first", "second"],
        "first",
    )
    sent = [message["role"] for message in calls[0]["messages"]]
    assert sent == ["user", "assistant", "user"]
    assert calls[0]["messages"][:2] == old["result"]["transcript"]["messages"]
    assert snapshot(new["snapshot_path"])["history"] == ["first", "second"]


def test_a_resumed_sub_agent_goes_on_with_its_conversation(host: DirectoryHost) -> None:
    old = run(host, 'return wait_agent(sub_agent_run("first", {provider: "mock", background: true}))')
    calls = run(
        host,
        f'wait_agent(send_input(resume_agent("{old["id"]}"), "second"))\nreturn llm_mock_calls()',
    )
    said = ["first", "Mock response to 1-word prompt: first", "second"]
    assert [message["content"] for message in calls[0]["messages"]] == said


def test_what_was_running_is_interrupted(host: DirectoryHost) -> None:
    old = run(host, f'return spawn_agent({{task: "first", node: {NODE}}})')
    assert snapshot(old["snapshot_path"])["status"] == "running"
    resumed, waited, done = run(
        host,
        f"""
        let h = resume_agent("{old["id"]}")
        let w = wait_agent(h)
        return [h, w, wait_agent(send_input(h, "second"))]
        """,
    )
    assert resumed["status"] == waited["status"] == "interrupted"
    assert (done["status"], done["result"]["task"]) == ("completed", "second")


def test_an_awaiting_worker_can_be_triggered_after_it_comes_back(host: DirectoryHost) -> None:
    spawn = f'spawn_agent({{task: "first", wait: true, node: {NODE}, carry: {{retriggerable: true}}}})'
    old = run(host, f"return {spawn}")
    status = run(
        host,
        f'worker_trigger(resume_agent("{old["id"]}"), "again")\nsleep(2)\nreturn list_agents()[0].status',
    )
    assert (old["status"], status) == ("awaiting", "awaiting")


def test_resuming_a_live_worker_puts_the_snapshot_in_its_place(host: DirectoryHost) -> None:
    statuses = run(
        host,
        f"""
        let h = spawn_agent({{task: "first", node: {NODE}}})
        let r = resume_agent(h)
        sleep(2)
        let d = wait_agent(send_input(h, "second"))
        return [r.status, len(list_agents()), d.status, len(llm_mock_calls())]
        """,
    )
    assert statuses == ["interrupted", 1, "completed", 1]


def test_a_ceiling_comes_back_too(host: DirectoryHost) -> None:
    tools = """
        let reg = tool_define(tool_registry(), "write", "", {parameters: {}, executor: "host_bridge",
          host_capability: "x.y"})
        llm_mock({tool_calls: [{name: "write", arguments: {}}]})
    """
    node = '{id: "n", tools: reg, model_policy: {max_iterations: 1}}'
    old = run(host, f'{tools}\nreturn spawn_agent({{task: "t", wait: true, tools: ["read"], node: {node}}})')
    new = run(host, f'{tools}\nreturn wait_agent(send_input(resume_agent("{old["id"]}"), "again"))')
    for handle in (old, new):
        assert handle["result"]["result"]["tools"]["rejected"] == ["write"]
        reasons = [
            event["text"]
            for event in handle["result"]["transcript"]["events"]
            if event["kind"] == "PermissionDeny"
        ]
        assert all("exceeds tool ceiling" in reason for reason in reasons)
        assert reasons


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "failed to read"),
        ("[]", "is no worker snapshot: `_type` must be worker_snapshot"),
        ('{"_type": "worker_snapshot"}', "is no worker snapshot: missing id, name"),
    ],
)
def test_other_files_are_refused(host: DirectoryHost, text: str, problem: str) -> None:
    (host.directory / "x.json").write_text(text)
    with pytest.raises(VmError, match=r"resume_agent: .*x\.json'") as caught:
        run(host, 'resume_agent("x.json")')
    assert problem in str(caught.value)


@pytest.mark.parametrize(("key", "value"), [("status", "odd"), ("history", "x"), ("config", None)])
def test_spoilt_snapshots_are_refused(host: DirectoryHost, key: str, value: Any) -> None:
    path = Path(spawned(host)["snapshot_path"])
    path.write_text(json.dumps({**snapshot(str(path)), key: value}))
    with pytest.raises(VmError, match="is no worker snapshot"):
        run(host, f'resume_agent("{path}")')


def test_an_input_of_the_repl_ends_with_its_workers(host: DirectoryHost) -> None:
    session = Vm(host).repl()
    carry = "carry: {persist_state: false}"
    assert session.run(f'let h = spawn_agent({{task: "t", node: {NODE}, {carry}}})\nh.status') == "running"
    assert session.run("list_agents()[0].status") == "interrupted"
    assert session.run("wait_agent(h).status") == "interrupted"
    assert session.run('wait_agent(send_input(h, "again")).status') == "completed"


# What a host hears.

LIFE = f"""
    let carry = {{persist_state: false}}
    let h = wait_agent(spawn_agent({{task: "one", name: "w", node: {NODE}, carry: carry}}))
    wait_agent(send_input(h, "two"))
    llm_mock({{error: {{category: "auth", message: "no key"}}}})
    send_input(h, "three")
    sleep(2)
    close_agent(h)
    let again = carry + {{retriggerable: true}}
    spawn_agent({{task: "cycle", name: "r", node: {NODE}, carry: again, wait: true}})
"""

EVENTS = [
    ("WorkerSpawned", "running", "w", "one"),
    ("WorkerCompleted", "completed", "w", "one"),
    ("WorkerProgressed", "progressed", "w", "two"),
    ("WorkerCompleted", "completed", "w", "two"),
    ("WorkerProgressed", "progressed", "w", "three"),
    ("WorkerFailed", "failed", "w", "three"),
    ("WorkerCancelled", "cancelled", "w", "three"),
    ("WorkerSpawned", "running", "r", "cycle"),
    ("WorkerWaitingForInput", "awaiting_input", "r", "cycle"),
]


def test_hosts_are_told_of_every_change(host: DirectoryHost) -> None:
    vm, heard = Vm(host), []
    vm.sessions.observers.append(lambda event: heard.append(event))
    vm.run_source(LIFE)
    updates = [event for event in heard if event["type"] == "worker_update"]
    keys = ("event", "status", "worker_name", "worker_task")
    assert [tuple(event[key] for key in keys) for event in updates] == EVENTS
    assert {event["worker_mode"] for event in updates} == {"stage"}
    assert set(updates[0]) == {*keys, "type", "session_id", "worker_id", "worker_mode", "metadata", "audit"}
    assert updates[0]["session_id"] == f"worker_session_{updates[0]['worker_id']}_n"
    assert [event["metadata"]["error"] for event in updates[5:7]] == ["no key", "worker cancelled"]
    assert updates[0]["audit"]["worker_id"] == updates[0]["worker_id"]


def test_hooks_are_told_of_every_change(host: DirectoryHost) -> None:
    vm, heard = Vm(host), []
    for event in dict.fromkeys(event for event, *_ in EVENTS):
        vm.hook(event, lambda payload: heard.append(payload))
    vm.run_source(LIFE)
    told = [(payload["event"], payload["worker"]) for payload in heard]
    assert [(event, w["status"], w["name"], w["task"]) for event, w in told] == EVENTS
    assert set(told[0][1]) == {"id", "name", "task", "mode", "status", "metadata"}


def test_a_hook_that_raises_is_a_warning(host: DirectoryHost) -> None:
    vm = Vm(host)

    def fail(payload: dict[str, Any]) -> None:
        raise ValueError("broken hook")

    vm.hook("WorkerCompleted", fail, 'worker.name == "w"')
    vm.run_source(LIFE)
    assert "".join(host.warnings).count("ValueError: broken hook") == 2


def test_updates_go_to_the_session_that_spawned_and_not_to_its_subscribers(host: DirectoryHost) -> None:
    vm, heard = Vm(host), []
    vm.sessions.observers.append(lambda event: heard.append(event))
    vm.run_source(
        """
        pipeline main(task) {
          agent_session_open("parent")
          agent_subscribe("parent", { event -> println(event.type) })
          let reg = tool_define(tool_registry(), "delegate", "", {parameters: {}, handler: { args ->
            sub_agent_run("sub", {provider: "mock", tools: tool_registry(), background: true,
              carry: {persist_state: false}})
            return "ok"
          }})
          llm_mock({tool_calls: [{name: "delegate", arguments: {}}]})
          agent_loop("go", nil, {provider: "mock", session_id: "parent", tools: reg})
          wait_agent(list_agents())
        }
        """
    )
    printed = "".join(host.printed)
    assert "turn_start" in printed
    assert "worker_update" not in printed
    updates = [event for event in heard if event["type"] == "worker_update"]
    assert [(event["session_id"], event["status"]) for event in updates] == [
        ("parent", "running"),
        ("parent", "completed"),
    ]


def test_a_command_policy_whose_hooks_are_lost_is_refused(host: DirectoryHost) -> None:
    policy = '{deny_patterns: ["rm"], pre: { ctx -> {deny: "no"} }}'
    node = f'{{id: "n", model_policy: {{provider: "mock", command_policy: {policy}}}}}'
    path = run(host, f'return wait_agent(spawn_agent({{task: "t", node: {node}}})).snapshot_path')
    kept = snapshot(path)["config"]["node"]["model_policy"]["command_policy"]
    assert kept == {"deny_patterns": ["rm"], "pre": "<fn(ctx)>"}
    with pytest.raises(VmError, match=r"command_policy\.pre must be a closure, got string"):
        run(host, f'wait_agent(send_input(resume_agent("{path}"), "again"))')
