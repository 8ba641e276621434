"""Mocks of host operations, and the calls that they handled. Spec: 04 §24, 02 §27."""

from __future__ import annotations

from harnpy.vm.errors import Thrown
from harnpy.vm.values.equality import equal
from harnpy.vm.values.objects import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value


_CONFIG_KEYS = ("result", "error", "params")


class Mock:
    """``params`` are entries that a call must have; None matches any call."""

    def __init__(self, capability: str, operation: str, given: Value, params: Value) -> None:
        self.capability = capability
        self.operation = operation
        config = given if type(given) is dict and any(key in given for key in _CONFIG_KEYS) else None
        self.result = config.get("result") if config else given
        error = config.get("error") if config else None
        self.error = None if error is None else display(error)
        wanted = config.get("params") if config else params
        self.params: Dict | None = wanted if type(wanted) is dict else None

    def matches(self, capability: str, operation: str, params: Dict) -> bool:
        if (self.capability, self.operation) != (capability, operation):
            return False
        wanted = (self.params or {}).items()
        return all(key in params and equal(params[key], value) for key, value in wanted)


class _Scope:
    def __init__(self) -> None:
        self.mocks: list[Mock] = []
        self.calls: list[dict[str, Any]] = []


class HostMocks:
    """The mocks of one run, in scopes that can be set aside."""

    def __init__(self) -> None:
        self._scope = _Scope()
        self._saved: list[_Scope] = []

    @property
    def mocks(self) -> list[Mock]:
        return self._scope.mocks

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls that a mock took, as ``{capability, operation, params}``."""
        return list(self._scope.calls)

    def answer(self, capability: str, operation: str, params: Dict) -> tuple[Value] | None:
        """Return the result of the latest mock that matches, None without one. Throws the mock's error."""
        for mock in reversed(self.mocks):
            if mock.matches(capability, operation, params):
                call = {"capability": capability, "operation": operation, "params": params}
                self._scope.calls.append(call)
                if mock.error:
                    raise Thrown(mock.error)
                return (mock.result,)
        return None

    def clear(self) -> None:
        self._scope = _Scope()
        self._saved.clear()

    def push_scope(self) -> None:
        """Start without mocks and calls until `pop_scope`."""
        self._saved.append(self._scope)
        self._scope = _Scope()

    def pop_scope(self) -> None:
        if not self._saved:
            raise Thrown("host_mock_pop_scope: no scope to pop")
        self._scope = self._saved.pop()
