"""The environment: variables, the user's shell, and the machine: its system, its name, its user."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    class Environment(Protocol):
        def get(self, name: str) -> str | None:
            """The value of a variable, None when it is not set."""

        def all(self) -> Mapping[str, str]:
            """All variables, as a program that we start inherits them."""

        def login_shell(self) -> str | None:
            """The shell that the user's account names."""

    class Machine(Protocol):
        def platform(self) -> str:
            """The system: ``linux``, ``darwin`` or ``windows``."""

        def arch(self) -> str:
            """The processor: ``x86_64``, ``aarch64`` …"""

        def host_name(self) -> str:
            """The name of the machine, as the program `hostname` prints it."""

        def user_name(self) -> str:
            """The name of the process's user in the account database; ``""`` when it has none."""

        def process_id(self) -> int:
            """The number of the process."""


class RealEnvironment:
    def get(self, name: str) -> str | None:
        # `os.environ.get` raises two errors for a variable that isn't set, as most aren't that a model call
        # asks for: a third of the time that its options take to read.
        environ = os.environ
        value = environ._data.get(environ.encodekey(name))  # type: ignore[attr-defined]
        return None if value is None else environ.decodevalue(value)

    def all(self) -> Mapping[str, str]:
        return os.environ

    def login_shell(self) -> str | None:
        import pwd

        try:
            return pwd.getpwuid(os.getuid()).pw_shell or None
        except KeyError:
            return None


class Variables:
    """An environment of the given variables only."""

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self.variables = variables or {}

    def get(self, name: str) -> str | None:
        return self.variables.get(name)

    def all(self) -> Mapping[str, str]:
        return self.variables

    def login_shell(self) -> str | None:
        return None


_PLATFORMS = {"win32": "windows", "cygwin": "windows"}
_PROCESSORS = {"amd64": "x86_64", "arm64": "aarch64"}


class RealMachine:
    def platform(self) -> str:
        return _PLATFORMS.get(sys.platform, sys.platform)

    def arch(self) -> str:
        name = os.uname().machine
        return _PROCESSORS.get(name.lower(), name)

    def host_name(self) -> str:
        return os.uname().nodename

    def user_name(self) -> str:
        import pwd

        try:
            return pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            return ""

    def process_id(self) -> int:
        return os.getpid()
