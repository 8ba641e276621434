"""Servers that `harn.toml` declares: eager and lazy ones, who holds them, skills. Spec: 07 §15.1, 09 §12."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.cli.project_setup import bind_manifest
from harnpy.project import ManifestError
from tests.mcp.programs import SERVERS, output
from tests.support import ROOT
from tests.worlds import OwnWorld

_COMMAND = f'command = ["{sys.executable}", "{SERVERS / "raw.py"}"]'


pytestmark = pytest.mark.usefixtures("trusted")


class Project:
    """A directory with a manifest; ``err`` is what was written to standard error."""

    def __init__(self, directory: Path, manifest: str) -> None:
        (directory / "harn.toml").write_text(manifest.replace("COMMAND", _COMMAND))
        self.out: list[str] = []
        self.err: list[str] = []
        self.vm = Vm(OwnWorld(self.out.append, self.err.append))
        bind_manifest(self.vm, str(directory))

    def run(self, source: str) -> list[str]:
        output(source, self.vm)
        lines = "".join(self.out).splitlines()
        self.out.clear()
        return lines


def test_eager_servers_are_a_global_and_lazy_ones_start_on_demand(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        """
        [[mcp]]
        name = "eager"
        COMMAND

        [[mcp]]
        name = "lazy"
        COMMAND
        lazy = true
        card = "card.json"

        [[mcp]]
        name = "broken"
        command = "no-such-program"
        """,
    )
    source = """
        fn status() { println(mcp_registry_status().map({ s -> [s.name, s.active, s.ref_count, s?.card] })) }
        println(mcp)
        println(mcp_call(mcp.eager, "add", {a: 1}))
        status()
        let lazy = mcp_ensure_active("lazy")
        mcp_ensure_active("lazy")
        println(mcp_call(lazy, "add", {a: 2}))
        status()
        mcp_release("lazy")
        println(mcp_call(lazy, "add", {a: 3}))
        mcp_release("lazy")
        mcp_release("lazy")
        mcp_release("eager")
        status()
        println(caught({ -> mcp_call(lazy, "add", {a: 4}) }))
        mcp_disconnect(mcp.eager)
        println(mcp_call(mcp_ensure_active("eager"), "add", {a: 5}))
        println(caught({ -> mcp_ensure_active("broken") }))
        println(caught({ -> mcp_call(mcp.broken, "add", {a: 6}) }))
    """
    broken = "failed to spawn 'no-such-program': No such file or directory (os error 2)"
    for _ in range(2):  # each program has its own
        assert project.run(source) == [
            "{broken: <mcp_client:broken>, eager: <mcp_client:eager>}",
            "1",
            "[[broken, false, 1, nil], [eager, true, 1, nil], [lazy, false, 0, card.json]]",
            "2",
            "[[broken, false, 1, nil], [eager, true, 1, nil], [lazy, true, 2, card.json]]",
            "3",
            "[[broken, false, 1, nil], [eager, true, 1, nil], [lazy, false, 0, card.json]]",
            "Runtime error: MCP client is disconnected",
            "5",
            f"mcp_ensure_active: {broken}",
            f"Runtime error: mcp.broken isn't connected: {broken}",
        ]
        assert "".join(project.err).splitlines() == [
            "[harn] mcp: connected to 'eager'",
            "[harn] mcp: deferred 'lazy' (lazy, boots on first use)",
            f"warning: mcp: failed to connect to 'broken': {broken}",
        ]
        project.err.clear()


def test_a_lazy_server_may_stay_for_a_while(tmp_path: Path) -> None:
    """`keep-alive-ms` is `keep_alive_ms`; who takes hold of the server meanwhile keeps it."""
    project = Project(tmp_path, '[[mcp]]\nname = "s"\nCOMMAND\nlazy = true\nkeep-alive-ms = 1')
    lines = project.run("""
        fn pid() { return mcp_call(mcp_ensure_active("s"), "pid") }
        let first = pid()
        mcp_release("s")
        println(pid() == first)
        mcp_release("s")
        while mcp_registry_status()[0].active { sleep(1ms) }
        println(pid() == first)
    """)
    assert lines == ["true", "false"]


def test_without_eager_servers_there_is_no_global(tmp_path: Path) -> None:
    project = Project(tmp_path, '[[mcp]]\nname = "s"\nCOMMAND\nlazy = true')
    with pytest.raises(Exception, match="mcp"):
        project.run("println(mcp)")


def test_tools_of_a_registry_reach_a_declared_server(tmp_path: Path) -> None:
    project = Project(tmp_path, '[[mcp]]\nname = "s"\nCOMMAND\nlazy = true')
    lines = project.run("""
        let about = {executor: "mcp_server", mcp_server: "s", parameters: {a: "int"}}
        var tools = tool_define(tool_registry(), "add", "Add", about)
        tools = tool_define(tools, "sum", "Add", about + {_mcp_tool_name: "add"})
        tools = tool_define(tools, "far", "Far", {executor: "mcp_server", mcp_server: "elsewhere"})
        calls([["add", {a: 1}], ["sum", {a: 2}], ["far", {}]])
        let result = loop({mcp_servers: nil, tools: tools})
        println(result.tools.rejected)
        println(mcp_registry_status()[0].active)
    """)
    assert (lines[0], lines[1], lines[-2], lines[-1]) == ("1", "2", "[far]", "false")
    assert "neither connected nor declared" in "\n".join(lines)


def test_a_loop_has_all_tools_of_a_declared_server_that_it_names(tmp_path: Path) -> None:
    project = Project(tmp_path, '[[mcp]]\nname = "s"\nCOMMAND\nlazy = true')
    lines = project.run("""
        fn seen() { println(mcp_registry_status()[0].ref_count) }
        calls([["s__add", {a: 1}]])
        let result = loop({mcp_servers: ["s"], post_turn_callback: { turn -> seen() }})
        println(result.tools.calls)
        let status = mcp_registry_status()[0]
        println([status.active, status.ref_count])
        println(try { loop({mcp_servers: ["none"]}) } catch (e) { "${e}" })
        println(mcp_registry_status()[0].ref_count)
    """)
    assert "1" in lines  # held while the loop runs
    assert lines[-4:-2] == ["[s__add]", "[false, 0]"]
    assert "no server named 'none' is registered" in lines[-2]
    assert lines[-1] == "0"


def test_skills_hold_the_servers_that_they_require(tmp_path: Path) -> None:
    project = Project(tmp_path, '[[mcp]]\nname = "s"\nCOMMAND\nlazy = true')
    lines = project.run("""
        fn status() { println(mcp_registry_status()[0].ref_count) }
        let sums = {description: "Add sums", prompt: "Add.", on_activate: status, on_deactivate: status}
        var skills = skill_define(skill_registry(), "adding", sums + {requires_mcp: ["s", "none"]})
        skills = skill_define(skills, "poems", {description: "Write poems", prompt: "Rhyme.", mcp: ["s"]})
        let options = {mcp_servers: nil, skills: skills, session_id: "one", skill_match: {sticky: false}}
        agent_session_open("one")
        fn about_servers(result) {
          for e in result.transcript.events.filter({ e -> e.kind.starts_with("skill_mcp") }) {
            println([e.kind, e.metadata])
          }
        }
        llm_mock({text: "one"})
        about_servers(agent_loop("add sums", nil, {provider: "mock"} + options))
        status()
        llm_mock({text: "two"})
        about_servers(agent_loop("write poems", nil, {provider: "mock"} + options))
        status()
    """)
    missing = "mcp: no server named 'none' is registered (check harn.toml)"
    holds = [
        "[skill_mcp_bound, {server: s, skill: adding}]",
        f"[skill_mcp_bind_failed, {{error: {missing}, server: none, skill: adding}}]",
    ]
    changes = [
        "[skill_mcp_unbound, {server: s, skill: adding}]",
        "[skill_mcp_bound, {server: s, skill: poems}]",
    ]
    assert lines == ["1", *holds, "0", "1", *holds, *changes, "0"]
    assert f"MCP server 'none' of skill 'adding': {missing}" in "".join(project.err)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ("[mcp]\nname = 'x'", "failed to read MCP servers: `mcp` must be an array of tables"),
        ("[[mcp]]\ncommand = 'x'", r"failed to read MCP servers: \[\[mcp\]\] number 1 has no `name`"),
        (
            "[[mcp]]\nname = 'x'\n[[mcp]]\nname = 'x'",
            "failed to read MCP servers: two servers are called 'x'",
        ),
        ("[[mcp]]\nname = 'x'\nargs = 'a b'", "failed to read MCP servers: MCP `args` must be a list"),
        ("[[mcp]\nname", "failed to read MCP servers: .*line 1"),
        (
            "[[mcp]]\nname = 'x'\ncomand = 'x'",
            r"failed to read MCP servers: \[\[mcp\]\] has no key 'comand' \(did you mean 'command'\? ",
        ),
    ],
)
def test_a_manifest_that_can_not_be_read(tmp_path: Path, manifest: str, message: str) -> None:
    project = Project(tmp_path, manifest)
    with pytest.raises(ManifestError, match=message):
        project.run("")


@pytest.mark.parametrize("cwd", ["", 'cwd = "servers"', 'cwd = "ABSOLUTE"'])
def test_a_server_runs_beside_its_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cwd: str) -> None:
    """Whatever the working directory is: `cwd` and `card`, too, count from the manifest's directory."""
    servers, elsewhere = tmp_path / "servers", tmp_path / "elsewhere"
    servers.mkdir()
    elsewhere.mkdir()
    (servers if cwd else tmp_path).joinpath("server.py").write_bytes((SERVERS / "raw.py").read_bytes())
    (tmp_path / "card.json").write_text('{"of": "s"}')
    monkeypatch.chdir(elsewhere)
    manifest = (
        f'[[mcp]]\nname = "s"\ncommand = "{sys.executable}"\nargs = ["server.py"]\ncard = "card.json"\n'
    )
    project = Project(tmp_path, manifest + cwd.replace("ABSOLUTE", str(servers)))
    lines = project.run('println(mcp_call(mcp.s, "add", {a: 1}))\nprintln(mcp_server_card("s"))')
    assert lines == ["1", "{of: s}"]


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    project = Project(tmp_path, f'[[mcp]]\nname = "s"\ncommand = "{sys.executable}"\ncwd = "far"')
    lines = project.run('println(caught({ -> mcp_call(mcp.s, "add", {a: 1}) }))')
    assert lines == [
        f"Runtime error: mcp.s isn't connected: failed to spawn '{sys.executable}': "
        f"`cwd` {tmp_path / 'far'} is no directory"
    ]


def test_what_a_server_said_last_is_why_it_is_not_connected(tmp_path: Path) -> None:
    """What it writes to standard error is written to the program's, unless it is quiet."""
    script = "echo starting >&2; echo no weather today >&2; exit 1"
    manifest = "".join(
        f"[[mcp]]\nname = '{name}'\ncommand = ['sh', '-c', '{script}']\n{more}\n"
        for name, more in (("weather", ""), ("calm", "quiet = true"))
    )
    project = Project(tmp_path, manifest)
    why = "MCP: server closed connection: no weather today"
    lines = project.run('for s in [mcp.weather, mcp.calm] { println(caught({ -> mcp_call(s, "today") })) }')
    assert lines == [f"Runtime error: mcp.{name} isn't connected: {why}" for name in ("weather", "calm")]
    told = "".join(project.err).splitlines()
    assert [line for line in told if line.startswith("warning")] == [
        f"warning: mcp: failed to connect to '{name}': {why}" for name in ("weather", "calm")
    ]
    assert set(told[:-2]) == {"starting", "no weather today"}
    assert told.count("starting") == 2  # it is started once more for the handshake; the quiet one isn't heard


def test_the_project_of_the_documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs/mcp.md").read_text()
    manifest, program, printed = re.search(
        r"```toml\n(# harn.toml\n.*?)```.*?```harn\n(// shop.harn\n.*?)```\n```text\n(.*?)```",
        page,
        re.DOTALL,
    ).groups()  # type: ignore[union-attr]
    (tmp_path / "mcp_server.py").write_bytes((ROOT / "examples/mcp_server.py").read_bytes())
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path, manifest)
    project.vm.run_source(program)
    assert "".join(project.out) == printed
