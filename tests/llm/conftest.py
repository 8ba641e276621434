"""A world of its own for models: an environment and files that are only dicts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harnpy.llm.call import Models
from tests.worlds import models_with

#: `world(HARN_LLM_PROVIDER="x", files={"/p/harn.toml": "…"})`; the program is in /p/sub.
World = Callable[..., Models]


@pytest.fixture
def world() -> World:
    def make(files: dict[str, str] | None = None, **env: str) -> Models:
        def read(path: str) -> str:
            if path not in (files or {}):
                raise FileNotFoundError(2, "No such file or directory", path)
            return files[path]

        is_file = (files or {}).__contains__
        return models_with(env, read_text=read, is_file=is_file, directory=lambda: "/p/sub")

    return make
