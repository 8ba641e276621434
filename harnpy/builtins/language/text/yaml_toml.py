"""YAML and TOML texts to values and back. Spec: 04 §11.5."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.domain_values import HarnValues
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import Thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

    Items = Callable[[Value], list[Value] | None]
    Write = Callable[[Value, Items, Callable[[], object]], str]

builtin = partial(declare, family="json_schema")


@builtin("yaml_parse(text: string) -> any")
def yaml_parse(vm: Vm, text: str) -> Value:
    r"""The value of a YAML text, by the core schema of YAML 1.2: `yes` and dates are strings.

    Throws `YAML parse error: <detail> at line L column C`, for a key that is no string `yaml_parse: …`.

    Example:
        yaml_parse("open: true\nwares: [tea, milk]\n")  // {open: true, wares: ["tea", "milk"]}
    """
    from harnpy.text.yaml.errors import KeyTypeError, YamlError
    from harnpy.text.yaml.reader import parse_yaml

    try:
        return parse_yaml(text, look=HarnValues(vm).look)
    except KeyTypeError as error:
        raise Thrown(f"yaml_parse: {error}") from None
    except YamlError as error:
        raise Thrown(f"YAML parse error: {error}") from None


@builtin("yaml_stringify(v: any) -> string")
def yaml_stringify(vm: Vm, v: Value) -> str:
    r"""The value as YAML in block style, keys in ascending order; what is no data as its text.

    Example:
        yaml_stringify({shop: {open: true}})  // "shop:\n  open: true\n"
    """
    from harnpy.text.yaml.writer import to_yaml

    return _written(vm, "yaml_stringify", to_yaml, v)


@builtin("toml_parse(text: string) -> dict")
def toml_parse(vm: Vm, text: str) -> dict[str, Value]:
    r"""The table of a TOML text; dates and times are strings. Throws `TOML parse error: <detail>`.

    Example:
        toml_parse("[shop]\nopen = true\n")  // {shop: {open: true}}
    """
    from harnpy.reading.dicts import read_toml

    try:
        return read_toml(text)
    except ValueError as error:
        raise Thrown(f"TOML parse error: {error}") from None


@builtin("toml_stringify(v: dict) -> string")
def toml_stringify(vm: Vm, v: Value) -> str:
    r"""The dict as TOML, keys in ascending order. Throws for what TOML has no word for, such as nil.

    Example:
        toml_stringify({shop: {open: true}})  // "[shop]\nopen = true\n"
    """
    from harnpy.text.toml.writer import to_toml

    return _written(vm, "toml_stringify", to_toml, v)


def _written(vm: Vm, name: str, write: Write, v: Value) -> str:
    values = HarnValues(vm)
    try:
        return write(v, values.items, values.look)
    except ValueError as error:
        raise Thrown(f"{name}: {error}") from None
