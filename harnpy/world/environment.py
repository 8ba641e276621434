"""The environment: variables, and the user's shell."""

from __future__ import annotations

import os

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


class RealEnvironment:
    def get(self, name: str) -> str | None:
        return os.environ.get(name)

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
