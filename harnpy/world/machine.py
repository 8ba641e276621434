"""The machine: its system, its name, and who the process belongs to."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

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
