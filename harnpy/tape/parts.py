"""The parts of the world that a tape keeps otherwise than a durable run does. Spec: 13 §3.

Everything is on the tape, settings too: a replay needs nothing of the machine that it happens on.
"""

from __future__ import annotations

import os.path
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from harnpy.durable.journal import HUMAN, READ
from harnpy.durable.recorded import READS, RecordedHttp, effect, is_secret
from harnpy.formats.secrets.secret_names import is_secret_name
from harnpy.tape.journal import is_of_decisions
from harnpy.tape.redaction import HIDDEN, LEAST
from harnpy.world.files import private_files
from harnpy.world.host import People

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import BinaryIO

    from harnpy.tape.journal import TapeJournal
    from harnpy.world.connections import Settings
    from harnpy.world.files import Files


#: The variables that other programs inherit in a replay, where there are none.
_INHERITED: Final[Mapping[str, str]] = {"HARN_REPLAY": "1"}


class TapedEnvironment:
    """Variables keep the values that they had when they were first asked for. Of a secret a tape only has
    that it was there."""

    def __init__(self, environment: Any, journal: TapeJournal) -> None:
        self._environment = environment
        self._journal = journal

    def get(self, name: str) -> str | None:
        environment = self._environment

        def look() -> str | None:
            value: str | None = environment.get(name)
            if not value or not (is_secret_name(name) or is_secret(name, value)):
                return value
            if len(value) < LEAST:
                self._journal.warn(f"the tape has the value of {name}, which is too short to be masked")
                return value
            self._journal.masking.learn(value)
            self._journal.masking.learn_from(value)
            return HIDDEN

        known = self._journal.fact(f"variable/{name}", look)
        if known != HIDDEN or self._journal.is_closed:
            return known
        secret: str | None = environment.get(name)
        self._journal.masking.learn(secret)
        return secret

    def all(self) -> Mapping[str, str]:
        """Return what other programs inherit. A replay, which starts none, only tells that there is some:
        a program that gets nothing reaches its database in another way.
        """
        found: Mapping[str, str] = _INHERITED if self._journal.is_closed else self._environment.all()
        return found

    def login_shell(self) -> str | None:
        look: Callable[[], str | None] = self._environment.login_shell
        return self._journal.fact("login_shell", look)


class TapedHttp(RecordedHttp):
    """Keeps connections open, too. Whether the files of a client's TLS can be used is an effect."""

    def client(self, surface: str, *, settings: Settings | None = None, **options: Any) -> Any:
        made: list[Any] = []

        def make() -> None:
            made.append(self._http.client(surface, settings=settings, **options))

        if settings is not None and settings.has_tls:
            asked = lambda: ["tls", settings.ca, settings.certificate, settings.key]  # noqa: E731
            self._journal.at_once(READ, make, asked)
            if not self._journal.renews():
                settings = replace(settings, ca=None, certificate=None, key=None, pins=frozenset())
        if not made:
            make()
        return self._recorded(made[0])

    def _transport(self, real: Any) -> Any:
        from harnpy.tape.connections import TapedTransport

        return TapedTransport(real, self._journal)


class TapedPeople(People):
    """Whether anybody can be asked is a fact of the run."""

    def __init__(self, people: People, journal: TapeJournal) -> None:
        super().__init__()
        if journal.fact("people", lambda: people.ask is not None):
            self.ask = effect(HUMAN, _answer(people), journal)


def _answer(people: People) -> Callable[[dict[str, Any]], Any]:
    def answer(request: dict[str, Any]) -> Any:
        if people.ask is None:
            raise OSError("nobody is there to be asked: `harnpy branch --attended` asks at the terminal")
        return people.ask(request)

    return answer


#: What settings are read with.
_LOOKS = frozenset({*READS, "read_text"})


class SettingsFiles:
    """The files that settings are read from: what was there stays, also what wasn't.

    What harnpy writes on its own account, such as transcripts of model calls, isn't written in a replay.

    What a person trusts is looked up in ``decisions``, the directory of the person of now, wherever the
    recorded variables lead.
    """

    def __init__(self, files: Files, journal: TapeJournal, cwd: str, decisions: str | None = None) -> None:
        self._files = files
        self._journal = journal
        self._cwd = cwd
        self._decisions = decisions

    def cwd(self) -> str:
        return self._cwd

    def private(self) -> SettingsFiles:
        return SettingsFiles(private_files(self._files), self._journal, self._cwd, self._decisions)

    def _real(self, place: str) -> str:
        """Return where a file of settings is on this machine."""
        if not is_of_decisions(place):
            return place
        if self._decisions is None:
            raise FileNotFoundError(2, "No such file or directory", place)
        return os.path.join(self._decisions, os.path.basename(place))

    def reader(self, path: str) -> BinaryIO:
        looks: Any = self
        return BytesIO(looks.read_bytes(path))

    def try_lock(self, path: str) -> Callable[[], object] | None:
        return (lambda: None) if self._journal.is_closed else self._files.try_lock(path)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            call, journal = getattr(self._files, name), self._journal
            if name in _LOOKS:

                def found(path, *args):
                    place = path if os.path.isabs(path) else os.path.normpath(os.path.join(self._cwd, path))

                    def look():
                        there = call(self._real(place), *args)
                        if isinstance(there, str | bytes):
                            text = there if isinstance(there, str) else there.decode("utf-8", "replace")
                            journal.masking.learn_from_settings(text)
                        return there

                    return journal.fact(f"file/{name}/{place}", look)

            else:

                def found(*args, **options):
                    return None if journal.is_closed else call(*args, **options)

            setattr(self, name, found)
            return found
