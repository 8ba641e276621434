"""Makes `inspect.eval`, and `inspect_deflated.eval` as older versions pack it (inspect-ai 0.3.285).

python make_inspect.py [DIRECTORY]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import inspect_ai
import tiktoken
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessageUser,
    ContentImage,
    ContentReasoning,
    ContentText,
    ModelOutput,
    get_model,
)
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, system_message, use_tools
from inspect_ai.tool import Tool, ToolError, tool

HERE = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent


class Words:
    """Counts tokens without fetching a vocabulary."""

    def encode(self, text: str, **_: Any) -> list[str]:
        return text.split()


tiktoken.get_encoding = tiktoken.encoding_for_model = lambda *_, **__: Words()


@tool
def look() -> Tool:
    async def execute(at: str) -> str:
        """Look at a colour.

        Args:
            at: which colour
        """
        if at == "blue":
            raise ToolError("There is no blue.")
        return "warm"

    return execute


def answers() -> Iterator[ModelOutput]:
    thought = ContentReasoning(reasoning="One look was enough.")
    long = "Red is warm. " * 20
    while True:
        for at in ("red", "blue"):
            yield ModelOutput.for_tool_call("mockllm/model", "look", {"at": at}, content="I look.")
        yield ModelOutput.from_content("mockllm/model", [thought, ContentText(text=long.strip())])


image = ContentImage(image="data:image/png;base64," + "aGk/aGk+" * 20)
asked = [ChatMessageUser(content=[ContentText(text="What is red?"), image])]
task = Task(
    dataset=[Sample(input=asked, target="warm", id="s1"), Sample(input="And again?", target="warm", id=2)],
    solver=[system_message("Be short."), use_tools(look()), generate()],
    scorer=includes(),
    name="colours",
)
with tempfile.TemporaryDirectory() as logs:
    model = get_model("mockllm/model", custom_outputs=answers())
    options: Any = {"log_dir": logs, "log_format": "eval", "max_samples": 1, "display": "none"}
    [log] = inspect_ai.eval(task, model=model, **options)
    assert log.status == "success"
    shutil.copy(log.location, HERE / "inspect.eval")
    from inspect_ai._util.zipfile import zipfile_compress_kwargs  # noqa: F401 - registers zstd with zipfile

    with (
        zipfile.ZipFile(HERE / "inspect.eval") as packed,
        zipfile.ZipFile(HERE / "inspect_deflated.eval", "w", zipfile.ZIP_DEFLATED) as deflated,
    ):
        for name in packed.namelist():
            if name.startswith(("samples/", "_journal/start")):
                deflated.writestr(name, packed.read(name))
