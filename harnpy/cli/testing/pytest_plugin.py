"""A plugin of pytest: `pytest --harn` runs the tests of `.harn` files, and fixtures for tests in Python.

Installed as the entry point ``harn`` of ``pytest11``, so every pytest of the environment imports this module:
it imports nothing else of harnpy before a test needs it. Spec: 09 §3.6.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harnpy import Vm, World
    from harnpy.llm.providers.mock import MockProvider
    from harnpy.session.runtime import SessionRuntime


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("harn", "tests of Harn programs")
    group.addoption("--harn", action="store_true", help="Run the test pipelines of .harn files, too.")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("harn"):
        config.pluginmanager.register(_Files(), "harn-files")


class _Files:
    """Collects `.harn` files; registered only where that is asked for."""

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        return HarnFile.from_parent(parent, path=file_path) if file_path.suffix == ".harn" else None


class HarnFile(pytest.File):
    """A `.harn` file; its items are its test pipelines."""

    def collect(self) -> Iterator[pytest.Item]:
        from harnpy.cli.project_setup import require_trust
        from harnpy.cli.testing.user_tests import find_tests
        from harnpy.project import ManifestError

        for file in find_tests(self.path):
            if file.error:
                raise self.CollectError(file.error)
            try:
                require_trust([self.path])
            except ManifestError as error:
                raise self.CollectError(error.message) from None
            for name in file.tests:
                yield HarnTest.from_parent(self, name=name)


class _Failure(Exception):
    """A test failed; the report of `harnpy test` says why."""


class HarnTest(pytest.Item):
    """A test pipeline, run as `harnpy test` runs it."""

    def runtest(self) -> None:
        from harnpy.cli.testing.sandbox import DEFAULT_TIMEOUT
        from harnpy.cli.testing.user_tests import TestFile, run_tests

        (result,) = run_tests(TestFile(self.path, (self.name,)), DEFAULT_TIMEOUT).results
        if result.output:
            self.add_report_section("call", "output", result.output)
        if result.status == "fail":
            raise _Failure(result.detail)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, _Failure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


# Fixtures.


def _world(state: Path) -> World:
    from harnpy.cli.testing.sandbox import sandboxed_world

    # Looked up at each write: `capsys` puts other streams there.
    return sandboxed_world(
        lambda text: sys.stdout.write(text), "mock", str(state), lambda text: sys.stderr.write(text)
    )


@pytest.fixture
def harn_model() -> MockProvider:
    """The model of the other two: `add({"text": …})` queues a reply, `calls()` returns what it was asked."""
    from harnpy.llm.providers.mock import MockProvider

    return MockProvider()


@pytest.fixture
def harn_vm(harn_model: MockProvider, tmp_path: Path) -> Vm:
    """A Vm in which `harn_model` answers and no real model is called. It prints to stdout and stderr.

    What programs keep for their next run is in the test's `tmp_path`.
    """
    from harnpy import Vm

    vm = Vm(_world(tmp_path))
    vm.settings.on_models.append(lambda models: setattr(models, "mock", harn_model))
    return vm


@pytest.fixture
def harn_runtime(harn_model: MockProvider, tmp_path: Path) -> Iterator[SessionRuntime]:
    """A `SessionRuntime` on a store in memory, whose definitions `harn_model` answers."""
    from harnpy import LoopFactory
    from harnpy.llm.call import Models
    from harnpy.session import SessionRuntime

    world = _world(tmp_path)
    models = Models(world)
    models.mock = harn_model
    runtime = SessionRuntime("memory:", agents=LoopFactory(host=world, models=models))
    try:
        yield runtime
    finally:
        runtime.close()
