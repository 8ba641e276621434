"""Who sets a setting: the session itself, its agent, the runtime. Spec: 10 §C8.1.

A setting is looked up when it is used, so a change at one level reaches every session that hasn't set it
itself, at once, and writes nothing into their logs.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from harnpy.reading.dicts import detached
from harnpy.session.settings.keys import REGISTERS, check, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harnpy.session.registers import Register


class Level(MutableMapping[str, Any]):
    """The settings of an agent, of a runtime. None unsets one.

    Keys may be written as ``session.<k>``, ``settings.<k>`` or ``<k>``; a value that a known setting can't
    have raises `InvalidArgument`.
    """

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        self._values: dict[str, Any] = {}
        self.update(given or {})

    def __setitem__(self, key: str, value: Any) -> None:
        name = name_of(key)
        check(name, value)
        if value is None:
            self._values.pop(name, None)
        else:
            self._values[name] = value

    def __delitem__(self, key: str) -> None:
        del self._values[name_of(key)]

    def __getitem__(self, key: str) -> Any:
        return self._values[name_of(key)]

    def get(self, key: str, default: Any = None) -> Any:
        return self._values.get(name_of(key), default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Settings(Mapping[str, Any]):
    """The settings that hold for one session: its registers', then those of ``levels``, the nearest first.

    It shows what is set when it is read. A setting that nobody has set isn't in it.
    """

    def __init__(
        self, registers: Callable[[], Mapping[str, Register]], levels: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self._registers = registers
        self._levels = levels

    def __getitem__(self, key: str) -> Any:
        name = name_of(key)
        own = self._registers().get(REGISTERS + name)
        if own is not None and own.value is not None:
            return detached(own.value)
        for level in self._levels:
            value = level.get(name)
            if value is not None:
                return detached(value)
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        own = (key for key, known in self._registers().items() if known.value is not None)
        names = dict.fromkeys(key.removeprefix(REGISTERS) for key in own if key.startswith(REGISTERS))
        for level in self._levels:
            names |= {name_of(key): None for key in level if level[key] is not None}
        return iter(names)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)})"
