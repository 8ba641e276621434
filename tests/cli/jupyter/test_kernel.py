"""The kernel as notebooks use it, over Jupyter's protocol. Spec: 12 §5.

Two of the tests have a kernel, which takes longer to start than all that it does here: the notebook of the
docs, and everything else.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.cli.jupyter.conftest import Notebook, running
from tests.support import ROOT, Command

_TOUR = ROOT / "docs" / "notebooks" / "tour.ipynb"
#: How long something took.
_TIMES = re.compile(r"\d+(?:\.\d+)? m?s\b")


def test_the_notebook_of_the_docs_shows_what_it_says(kernels: Path, tmp_path: Path) -> None:
    """`HARNPY_UPDATE_GOLDEN=1` writes its outputs anew."""
    pytest.importorskip("nbclient")
    import nbformat
    from nbclient import NotebookClient

    before = nbformat.read(_TOUR, as_version=4)
    after = nbformat.read(_TOUR, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    client = NotebookClient(after, kernel_name="harn", record_timing=False, resources=resources)
    asyncio.run(client.async_execute())
    if os.environ.get("HARNPY_UPDATE_GOLDEN"):
        nbformat.write(after, _TOUR)
    else:
        assert _outputs(after) == _outputs(before)


def _outputs(notebook: Any) -> list[tuple[str, list[Any]]]:
    return [
        (cell.source, [_output(one) for one in cell.outputs]) for cell in notebook.cells if "outputs" in cell
    ]


def _output(output: Any) -> Any:
    """Return what is the same each time: beside a table or a picture, the text has ids and times."""
    if output.output_type == "stream":
        return output.name, output.text
    if output.output_type == "error":
        return output.traceback
    data = output["data"]
    return _TIMES.sub("…", data["text/html"]) if "text/html" in data else data


def test_a_conversation(kernels: Path, tmp_path: Path) -> None:
    async def conversation() -> None:
        async with running(tmp_path) as notebook:
            await _conversation(notebook)

    asyncio.run(conversation())


async def _conversation(notebook: Notebook) -> None:
    run = notebook.run

    # Cells share what they define, may define it again, and show their last value.
    assert await run("fn twice(n) { return n * 2 }\nlet a = 4") == []
    assert _text(await run("a\ntwice(a)")) == "8"
    assert await run("fn twice(n) { return n + n + 1 }") == []
    assert _text(await run("twice(2)")) == "5"
    assert await run("nil") == []

    # What is printed comes as it is printed, standard error apart, and before the value.
    shown = await run('println("one")\neprintln("two")\n3')
    assert [(one["kind"], one.get("name"), one.get("text")) for one in shown] == [
        ("stream", "stdout", "one\n"),
        ("stream", "stderr", "two\n"),
        ("execute_result", None, None),
    ]

    # Errors have their place, in colour, and cost nothing that was there.
    (error,) = await run("let b = 1\nb / 0")
    assert error["evalue"] == "Runtime error: Division by zero (line 2)"
    assert error["traceback"][0].startswith("\x1b[1;31merror\x1b[0m: ")
    assert re.search(r"cell \d+:2:1$", error["traceback"][1])
    assert error["traceback"][-1].endswith("\x1b[1;31m^\x1b[0m")
    (error,) = await run("let = 3")
    assert "expected variable name" in error["traceback"][0]
    assert _text(await run("a")) == "4"

    # An interrupt ends what runs and what waits, and its `finally` blocks run.
    for waits in ("while true { }", "sleep(1h)", 'exec("sleep", "3600")'):
        shown = await run(
            f'try {{\nprintln("begun")\n{waits}\n}} finally {{ println("ended") }}', interrupt_at="begun"
        )
        assert [one.get("text", one.get("evalue")) for one in shown] == [
            "begun\n",
            "ended\n",
            "interrupted",
        ], waits
    assert _text(await run("a + 1")) == "5"

    # Questions are asked in the notebook, and may be interrupted.
    assert _text(await run('ask_user("Which colour?")', "blue")) == "blue"
    assert notebook.prompts.pop() == "? Which colour?\n> "
    assert _text(await run("read_line()", "a line")) == "a line"
    (error,) = await run("read_line()", None)
    assert error["evalue"] == "interrupted"
    assert await run("read_line()") == []

    # Commands of the REPL.
    assert "twice: closure" in (await run(":vars"))[0]["text"]
    assert "unknown command `:nope`" in (await run(":nope"))[0]["text"]

    # What is asked of a cell that doesn't run.
    client = notebook.client
    found = await notebook.reply(client.complete("let c = twi"))
    assert (found["matches"], found["cursor_start"], found["cursor_end"]) == (["twice"], 8, 11)
    found = await notebook.reply(client.inspect("twice(2)", 3))
    assert found["found"]
    assert "fn twice(n)" in found["data"]["text/markdown"]
    assert not (await notebook.reply(client.inspect("1 + 1", 2)))["found"]
    assert await notebook.reply(client.is_complete("fn f() {")) == {"status": "incomplete", "indent": ""}
    assert await notebook.reply(client.is_complete("a + 1")) == {"status": "complete"}
    info = await notebook.reply(client.kernel_info())
    assert info["language_info"]["pygments_lexer"] == "harn"
    assert not info.get("supported_features")

    # `exit` asks the notebook to end the kernel, which it does or doesn't.
    assert (await notebook.reply(client.execute("exit(0)")))["payload"] == [
        {"source": "ask_exit", "keepkernel": False}
    ]
    await run(":reset")
    assert "Undefined variable: a" in (await run("a"))[0]["evalue"]


def _text(shown: list[dict[str, Any]]) -> str:
    """Return the value that a cell shows, and nothing else."""
    (result,) = shown
    return str(result["data"]["text/plain"])


@pytest.mark.skipif(find_spec("ipykernel") is not None, reason="the extra is installed")
def test_without_the_extra_both_commands_say_what_to_install(harnpy: Command, write: Any) -> None:
    for words in (["install"], ["kernel", write("connection.json", "{}")]):
        done = harnpy("jupyter", *words)
        assert done.returncode == 1
        assert done.stderr == "error: `harnpy jupyter` needs ipykernel: pip install 'harnpy[jupyter]'\n"


@pytest.mark.skipif(find_spec("ipykernel") is None, reason="the extra `jupyter` is not installed")
def test_the_kernel_runs_with_the_python_that_installed_it(kernels: Path) -> None:
    spec = json.loads((kernels / "kernels" / "harn" / "kernel.json").read_text())
    assert spec["language"] == "harn"
    assert spec["argv"][1:] == ["-m", "harnpy", "jupyter", "kernel", "{connection_file}"]
