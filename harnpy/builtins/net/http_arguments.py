"""What requests are given, as the domain reads it. Spec: 04 §21.1."""

from __future__ import annotations

from dataclasses import replace

from harnpy.builtins.bridge.live_http import http_calls_of
from harnpy.builtins.bridge.option_tables import check_options
from harnpy.builtins.bridge.places import path_at_work
from harnpy.builtins.language.files.failures import thrown
from harnpy.net.http.calls import Call
from harnpy.net.http.errors import HttpError
from harnpy.net.http.request import merged, read_request
from harnpy.vm.values.objects import type_name
from harnpy.world.effects import READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.net.http.sessions import Session
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

    Dict = dict[str, Value]


def options_of(vm: Vm, name: str, given: Value) -> Dict:
    """The options of the builtin ``name``. Raises a `Fault` for ones that it doesn't take."""
    if given is None:
        return {}
    if type(given) is not dict:
        raise HttpError(f"{name}: options must be a dict, got {type_name(given)}")
    check_options(vm, name, given)
    return given


def with_body(body: Value, options: Dict) -> Dict:
    """The options with a body that was given as an argument; an empty one leaves room for a form."""
    if body is None or (body == "" and options.get("multipart") is not None):
        return options
    return {**options, "body": body}


def call_of(
    vm: Vm,
    name: str,
    method: str,
    url: str,
    options: Dict,
    most: int | None,
    surface: str = "http_request",
) -> Call:
    """A call as the builtin ``name`` makes it, in the session that an option names.

    ``most``: the bytes that a body may have unless an option says it; None is no limit.
    """
    if not url:
        raise HttpError(f"{name}: URL is required")
    options = {**options}
    handle = options.pop("session", None)
    session = None if handle is None else http_calls_of(vm).sessions.get(name, handle)
    return session_call(vm, name, method, url, options, most, session, surface)


def session_call(
    vm: Vm,
    name: str,
    method: str,
    url: str,
    options: Dict,
    most: int | None,
    session: Session | None,
    surface: str = "http_request",
) -> Call:
    if session is not None:
        options = merged(session.options, options)
    return Call(surface, read_request(name, method, url, options, ProgramDisk(vm, name), most), session)


def bounded(vm: Vm, call: Call) -> Call:
    """The call, whose body becomes one value."""
    largest = vm.sizes.characters
    most = call.request.most
    return call._replace(request=replace(call.request, most=largest if most is None else min(most, largest)))


class ProgramDisk:
    """The files of the program that calls the builtin ``name``."""

    def __init__(self, vm: Vm, name: str) -> None:
        self._vm = vm
        self._name = name

    def readable(self, path: str) -> str:
        place = path_at_work(self._vm, path)
        self._vm.world.require_place(READ, place)
        return place

    def content(self, path: str) -> bytes:
        place = path_at_work(self._vm, path)
        with thrown(f"{self._name}: failed to read file {place}"):
            return self._vm.world.files.read_bytes(place, self._vm.sizes.characters)
