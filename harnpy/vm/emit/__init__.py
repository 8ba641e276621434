"""The compiler: resolved trees to Python functions; here, the operands and names that its text consists of.

Each function of a program becomes one Python function: its inner nodes are fused into it, so that nothing is
dispatched and nothing is called that the program does not call. `emitter` is one function being written,
`program` all lines of a file and the list of which function writes which node, `source_map` says where in the
program a line is; the other modules write one family of nodes each. May use `syntax`, `resolve` and
`declare`; loaded only when there is something to compile.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import CodeType
    from typing import TypeAlias

    from harnpy.vm.resolve import Variable

    Text: TypeAlias = "str | Operand"
    #: The least and the greatest int that a value can be.
    Bounds: TypeAlias = "tuple[int, int]"

# Every name that generated text may use, and where the value behind it comes from.
#
# The text knows nothing of how a name gets its value; `harnpy.vm.unit` sees to that, and
# `tests/vm/emit/test_protocol.py` holds the two together.


#: What every unit has: the Vm, the unit itself, the table of variables that functions share …
GIVEN = frozenset("vm UNIT m getrefcount impls implement call_method".split())
#: … what its imports need (`harnpy.vm.modules`) …
OF_IMPORTS = frozenset("bound bring bring_again publish pass_on".split())
#: … and what stands for functions that Python cannot express (`harnpy.vm.walk.program`).
OF_THE_WALKER = frozenset("walked walked_main".split())

#: What every turn of a loop and every function that calls others begins with (05 §9, §11).
POLL = "if signal.pending: poll()"

#: Slots that functions have besides those of the program's variables: the depth that the function was called
#: at, the one that it calls at, its deferred blocks …
OWN_SLOTS = frozenset("d e defers".split())
#: … and numbered ones: temporaries, flags of variables that alone hold their value, boxes of names that are
#: bound late, deferred blocks, functions.
NUMBERED_SLOTS = ("t", "sole", "int", "box", "deferred", "f", "make")

#: Python's own, where it means what Harn means or tells types apart.
OF_PYTHON = frozenset(
    "type len range tuple bool dict float int list str IndexError KeyError TypeError".split()
)

#: How the names start that stand for builtins, host values and methods; the functions below make them.
_PREFIXES = ("b_", "v_", "g_", "m_")

_PLACES = {
    "values": "Builtin Duration EnumValue Fn Generator Stream Struct display",
    "errors": "FAILURES Interrupted Thrown",
    "declare": "reject",
    "run.backtrace": "caught",
    "run.parameter_types": "check_parameter",
    "values.operators": (
        "add sub mul div mod power neg wrap eq ne lt gt le ge in_ index slice_ get_prop get_prop_optional "
        "get_path set_prop set_index range_to spread_list spread_dict destructure_dict destructure_list "
        "iterate_for whole_items SOLE read_path sole_holder store_path"
    ),
    "run.calls": (
        "MISSING UNSET again alive as_result bad_propagation construct constructor err field "
        "immutable make_struct overflow payload redeclared retry_count run_defers tool_handler"
    ),
    "vm.calls": (
        "TAIL bouncing call call_builtin call_dynamic call_from_frames call_late call_named fill generator "
        "hasten named pipe read_dynamic read_late shell tail tail_named tail_pipe undefined_target "
        "undefined_variable"
    ),
    "run.tasks": (
        "await_task spawn cancel_gracefully cancel_task is_cancelled deadline_begin deadline_end "
        "pause_deadlines resume_deadlines parallel"
    ),
    "run.iter_methods": "called_back plus",
    "run.locks": "mutex_begin mutex_end",
    "run.channels": "select select_limit",
    "vm": "poll signal",
}
#: Each helper by where it is: a module of `harnpy.vm`, the Vm (``vm``) or an attribute of the Vm. Those of
#: `run.tasks`, `run.locks` and `run.channels` are bound to the scheduler, their first parameter.
HELPERS = {name: place for place, names in _PLACES.items() for name in names.split()}


def helpers_used(codes: Iterable[CodeType]) -> list[tuple[str, str]]:
    """The helpers that ``codes``, or functions in them, refer to, each with its place."""
    found: set[str] = set()
    waiting = list(codes)
    while waiting:
        top = waiting.pop()
        found.update(top.co_names)
        waiting += [constant for constant in top.co_consts if type(constant) is type(top)]
    return [(name, HELPERS[name]) for name in sorted(found & HELPERS.keys())]


def builtin_function(name: str) -> str:
    """The Python function behind a builtin: called as ``(vm, *args)``, arguments converted."""
    return f"b_{name.replace('.', '__')}_"


def builtin_value(name: str) -> str:
    """The builtin as a first-class value."""
    return f"v_{name.replace('.', '__')}_"


def global_value(name: str) -> str:
    """A value that the host gives programs."""
    return f"g_{name}_"


def method_table(name: str, count: int) -> str:
    """The methods called ``name`` that take ``count`` arguments, by receiver type."""
    return f"m_{name if name.isascii() else name.encode().hex()}_{count}_"


def knows(name: str) -> bool:
    """Return True if generated text may use the global ``name``."""
    plain = GIVEN | OF_IMPORTS | OF_THE_WALKER | OF_PYTHON | HELPERS.keys()
    return name in plain or (name[:2] in _PREFIXES and name.endswith("_")) or _is_numbered(name)


def is_slot(name: str) -> bool:
    """Return True if a generated function may have a variable ``name``."""
    variable, _, number = name.removesuffix("_given").rpartition("_")
    return name in OWN_SLOTS or _is_numbered(name) or (variable != "" and number.isdigit())


def _is_numbered(name: str) -> bool:
    numbered = name.removesuffix("_items")
    start = numbered.rstrip("0123456789")
    return start != numbered and start in NUMBERED_SLOTS


# Texts of values, and what may be done with them.
#
# The text of an expression is a `str`: Python that computes the value where it stands. Some values need no
# computing, and their text is an `Operand`, which says what it is. Spec: 02 §3.
#
# Of `x + f(1)` the operands are ``Operand("x_1", SLOT)`` and the `str` ``"(t1 := f_2.call)(e, 1)"``. An
# f-string puts both into a larger text, which is a `str` again.


#: A value written out.
CONSTANT = "constant"
#: A Python variable. An assignment in between may change what it holds.
SLOT = "slot"
#: A slot of the compiler's own: once it is read it is not assigned again.
TEMP = "temp"
#: One that has got its value before a loop, and keeps it through all its turns.
AHEAD = "ahead"
#: An entry of the table of variables that functions share: any call in between may change what it holds.
ENTRY = "entry"


class Operand:
    """The text of a value that needs no computing, and its kind: one of the five above."""

    __slots__ = ("kind", "text")

    def __init__(self, text: str, kind: str) -> None:
        self.text = text
        self.kind = kind

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Operand({self.text!r}, {self.kind!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operand) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def is_slot(self) -> bool:
        """Return True if it is a Python variable, which can be assigned and asked about by a guard."""
        return self.kind == SLOT or self.kind == TEMP or self.kind == AHEAD

    @property
    def is_fixed(self) -> bool:
        """Return True if nothing that runs in between can change its value."""
        return self.kind == TEMP or self.kind == CONSTANT or self.kind == AHEAD


NIL = Operand("None", CONSTANT)

#: Harn's ints (02 §2.1); what isn't known of an int is within these bounds.
LEAST, MOST = -(1 << 63), (1 << 63) - 1
ANY = (LEAST, MOST)


def constant(value: object) -> Operand:
    """A value that Python writes as Harn means it."""
    return Operand(repr(value), CONSTANT)


def reading(variable: Variable) -> Operand:
    """Return what reads a variable of the program, and may be assigned."""
    return Operand(variable.python, ENTRY if variable.in_table else SLOT)


def type_of(text: Text) -> str:
    """The Python type of a value at hand. To read it off a variable takes two thirds of a call of `type`."""
    return f"type({text})" if isinstance(text, Operand) and text.kind == CONSTANT else f"{text}.__class__"


def at_hand(text: Text) -> bool:
    """Return True if ``text`` may be written several times, or later, and computes nothing."""
    return isinstance(text, Operand) and text.kind != ENTRY


def is_fixed(text: Text) -> bool:
    return isinstance(text, Operand) and text.is_fixed


def joined(texts: Iterable[Text]) -> str:
    """Texts as the items of a Python display or the arguments of a call."""
    return ", ".join(map(str, texts))


def tuple_text(items: Iterable[Text]) -> str:
    """A Python tuple of ``items``."""
    given = list(items)
    return f"({joined(given)}{',' if len(given) == 1 else ''})"
