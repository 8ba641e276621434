"""Skips what needs an agent framework where none is installed: they are the extra `peers`.

Modules and tests import them as if they were there. What fails because one is missing is skipped here, and
the reason names the module or the test; in CI it fails.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

#: What frameworks are imported as; the extra `peers` brings all of them.
PEERS = {"ag_ui", "agently", "agents", "langchain_core", "langgraph", "pydantic_ai"}


def missing(error: BaseException | None) -> str | None:
    """Return why a test can't run whose import of a framework failed; None for any other error."""
    while error is not None:
        package = (getattr(error, "name", None) or "").partition(".")[0]
        if isinstance(error, ModuleNotFoundError) and package in PEERS and "CI" not in os.environ:
            return f"needs '{package}': pip install -e '.[peers]'"
        error = error.__cause__
    return None


class Module(pytest.Module):
    """A module of tests that is skipped when it can't import a framework."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        try:
            return super().collect()
        except self.CollectError as error:
            reason = missing(error)
            if reason is None:
                raise
        pytest.skip(f"{self.nodeid} {reason}", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    module: pytest.Module = Module.from_parent(parent, path=module_path)
    return module


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    yield from _skipping(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    yield from _skipping(item)


def _skipping(item: pytest.Item) -> Generator[None]:
    try:
        yield
    except ImportError as error:
        reason = missing(error)
        if reason is None:
            raise
    else:
        return
    pytest.skip(f"{item.nodeid} {reason}")
