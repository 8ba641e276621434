"""What a program is told about a file that can't be read or written. Spec: 04 §19."""

from __future__ import annotations

from contextlib import contextmanager

from harnpy.vm.errors import Thrown
from harnpy.world.files import system_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def thrown(what: str) -> Iterator[None]:
    """Throw ``what: <reason>`` where the system refuses."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise Thrown(f"{what}: {system_reason(error)}") from None
