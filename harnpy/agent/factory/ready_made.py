"""The capabilities that are there from the beginning. Spec: 10 §C7.1."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any, Final

from harnpy.agent.factory.tools import Tool, tool
from harnpy.agent.rules.hooks import PRE_TOOL_USE
from harnpy.agent.tools.served import FILE_TOOLS
from harnpy.agent.workplace import real_path_in
from harnpy.llm.native_tools import Parameters

if TYPE_CHECKING:
    from harnpy.agent.factory.build import AgentBuild, Capability
    from harnpy.reading.dicts import Dict
    from harnpy.world import World

_SECONDS: Final = 120
_TASKS: Final = {
    "type": "object",
    "properties": {
        "tasks": {
            "type": "array",
            "description": "The whole list: it takes the place of the former one.",
            "items": {
                "type": "object",
                "properties": {
                    "content": {"type": "string", "description": "What is to be done."},
                    "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                    "activeForm": {"type": "string", "description": "The same while it is being done."},
                },
                "required": ["content", "status"],
            },
        }
    },
    "required": ["tasks"],
    "additionalProperties": False,
}
_PATH: Final = {"type": "string", "description": "Relative to the working directory."}


def use_bash(build: AgentBuild) -> None:
    """Tool ``bash``: commands in the working directory."""
    world = build.world

    async def bash(command: str, timeout: int = _SECONDS) -> str:
        """Run a command with bash, in the working directory. It reads no input.

        Args:
            command: The command.
            timeout: After how many seconds it is stopped.
        """
        ended = await world.processes.run(["bash", "-c", command], world.files.cwd(), None, timeout)
        said = (ended.out + ended.err).decode("utf-8", "replace")
        if ended.code is None:
            return f"Error: stopped after {timeout} s\n{said}"
        return said if ended.code == 0 else f"{said}\n[exit code {ended.code}]".lstrip("\n")

    build.add_tool(bash)


def use_files(build: AgentBuild) -> None:
    """Tools ``read_file``, ``list_directory`` and ``write_file``, below the working directory."""
    world = build.world
    numbers = {
        "offset": {"type": "integer", "description": "The first line, counted from 1."},
        "limit": {"type": "integer", "description": "How many lines."},
    }
    build.add_entry(_served("read_file", "Read a text file.", {"path": _PATH, **numbers}, ["path"]))
    build.add_entry(_served("list_directory", "List a directory.", {"path": _PATH}, []))
    build.read_only += FILE_TOOLS
    build.hooks.add(PRE_TOOL_USE, lambda payload: _stay_below(world, payload["tool"]))

    @tool
    def write_file(path: str, content: str) -> str:
        """Write a text file; what is there is replaced.

        Args:
            path: Relative to the working directory.
            content: The whole text.
        """
        whole = os.path.join(world.files.cwd(), path)
        world.files.make_directory(os.path.dirname(whole))
        world.files.write_text(whole, content)
        return f"wrote {len(content)} characters to {path}"

    build.add_tool(write_file)


def use_tasks(build: AgentBuild) -> None:
    """Tool ``todo_write``: the session's todo list."""
    session = build.session

    def write(arguments: Dict) -> str:
        session.set_tasks(arguments["tasks"])
        return f"{session.tasks.render()}\n{session.tasks.summary()}"

    build.add_tool(Tool("todo_write", "Write the todo list, to plan and to show progress.", _TASKS, write))


READY_MADE: Final[dict[str, Capability]] = {
    "use_bash": use_bash,
    "use_files": use_files,
    "use_tasks": use_tasks,
}


def _served(name: str, description: str, properties: Dict, required: list[str]) -> Dict:
    """Return a tool that the loop answers itself."""
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"name": name, "description": description, "parameters": Parameters(schema), "executor": "harn"}


def _stay_below(world: World, call: Dict) -> Any:
    """Refuse a call of a file tool whose path leads out of the working directory."""
    path = call["args"].get("path")
    if call["name"] not in (*FILE_TOOLS, "write_file") or not isinstance(path, str) or not path:
        return None
    files, here = world.files, world.files.cwd()
    root, real = files.real_path(here), real_path_in(files, here, path)
    if real is not None and (real == root or real.startswith(os.path.join(root, ""))):
        return None
    return {"deny": f"'{path}' is not below the working directory"}
