"""CSV, YAML and TOML texts to values and back. Spec: 04 §11.5."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.language.arguments import option, options
from harnpy.builtins.language.schemas import HarnValues
from harnpy.faults import paced
from harnpy.formats import csv
from harnpy.vm.declare import builtin
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import Thrown
from harnpy.vm.values import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

    Items = Callable[[Value], list[Value] | None]
    Write = Callable[[Value, Items, Callable[[], object]], str]

_OPTIONS = ("delimiter", "headers")


@builtin("csv_parse(text: string, opts?: dict) -> list", family="json_csv")
def csv_parse(vm: Vm, text: str, opts: Value) -> list[Value]:
    r"""Return the rows of a CSV text as lists of strings; skip blank lines.

    `opts`: `headers` (false): rows as dicts by the names in the first one, missing cells `""`; `delimiter`
    (`","`): its first character.

    Example: csv_parse("name,age\nAda,36\n", {headers: true})  // [{name: "Ada", age: "36"}]
    """
    headers, delimiter = _options("csv_parse", opts)
    try:
        rows = csv.read_rows(text, csv.delimiter_from(delimiter))
        return list(_counted(vm, csv.by_header(rows)) if headers else rows)
    except csv.CsvError as error:
        raise Thrown(f"csv_parse: {error}") from None


def _counted(vm: Vm, rows: Iterable[Value]) -> Iterator[Value]:
    """Yield the rows; few short ones under many names may have more cells than any result."""
    cells = 0
    for row in rows:
        cells += len(row)
        vm.sizes.check_items(cells)
        yield row


@builtin("csv_stringify(rows: list, opts?: dict) -> string", family="json_csv")
def csv_stringify(vm: Vm, rows: Value, opts: Value) -> str:
    r"""Return rows as CSV: lists of cells, or dicts, whose columns are all their keys in ascending order.

    `opts`: `headers` (false): a first line with the keys of dicts; `delimiter` (`","`): its first character.

    Example: csv_stringify([{name: "Ada", age: 36}], {headers: true})  // "age,name\n36,Ada\n"
    """
    headers, delimiter = _options("csv_stringify", opts)
    try:
        lines = csv.written_rows(_rows_of_texts(vm, rows, headers), csv.delimiter_from(delimiter))
        return _text(vm, lines)
    except csv.CsvError as error:
        raise Thrown(f"csv_stringify: {error}") from None


def _text(vm: Vm, lines: Iterable[str]) -> str:
    found, length = [], 0
    for line in lines:
        length += len(line)
        vm.sizes.check_text(length)
        found.append(line)
    return "".join(found)


def _rows_of_texts(vm: Vm, rows: Value, headers: bool) -> Iterator[list[str]]:
    if type(rows) is not list:
        raise Thrown("csv_stringify: expected a list of rows")
    dicts = sum(isinstance(row, dict) for row in paced(rows))
    if dicts:
        if dicts < len(rows):
            raise Thrown("csv_stringify: mixed list/dict rows are not supported")
        columns = sorted({key for row in paced(rows) for key in paced(list(row))})
        if headers:
            yield columns
        for row in paced(rows):
            yield [display(row[key]) if key in row else "" for key in paced(columns)]
        return
    if not all(type(row) is list for row in paced(rows)):
        raise Thrown("csv_stringify: each row must be a list of cells (or use dict rows)")
    for row in paced(rows):
        yield [display(cell) for cell in paced(row)]


def _options(name: str, opts: Value) -> tuple[bool, str]:
    """Return (headers, delimiter)."""
    given = options(name, opts, _OPTIONS)
    return option(name, given, "headers", bool, False), option(name, given, "delimiter", str, ",")


yaml_builtin = partial(declare, family="json_schema")


@yaml_builtin("yaml_parse(text: string) -> any")
def yaml_parse(vm: Vm, text: str) -> Value:
    r"""Return the value of a YAML text, by the core schema of YAML 1.2: `yes` and dates are strings.

    Throws `YAML parse error: <detail> at line L column C`, and `yaml_parse: …` for a key that isn't a string.

    Example: yaml_parse("open: true\nwares: [tea, milk]\n")  // {open: true, wares: ["tea", "milk"]}
    """
    from harnpy.formats.yaml import KeyTypeError, YamlError, parse_yaml

    try:
        return parse_yaml(text, look=HarnValues(vm).look)
    except KeyTypeError as error:
        raise Thrown(f"yaml_parse: {error}") from None
    except YamlError as error:
        raise Thrown(f"YAML parse error: {error}") from None


@yaml_builtin("yaml_stringify(v: any) -> string")
def yaml_stringify(vm: Vm, v: Value) -> str:
    r"""Return the value as block-style YAML, keys in ascending order; write what isn't data as its text.

    Example: yaml_stringify({shop: {open: true}})  // "shop:\n  open: true\n"
    """
    from harnpy.formats.yaml_writer import to_yaml

    return _written(vm, "yaml_stringify", to_yaml, v)


@yaml_builtin("toml_parse(text: string) -> dict")
def toml_parse(vm: Vm, text: str) -> dict[str, Value]:
    r"""Return the table of a TOML text; dates and times are strings. Throws `TOML parse error: <detail>`.

    Example: toml_parse("[shop]\nopen = true\n")  // {shop: {open: true}}
    """
    from harnpy.formats.dicts import read_toml

    try:
        return read_toml(text)
    except ValueError as error:
        raise Thrown(f"TOML parse error: {error}") from None


@yaml_builtin("toml_stringify(v: dict) -> string")
def toml_stringify(vm: Vm, v: Value) -> str:
    r"""Return the dict as TOML, keys in ascending order. Throws for values that TOML can't express, such as
    nil.

    Example: toml_stringify({shop: {open: true}})  // "[shop]\nopen = true\n"
    """
    from harnpy.formats.toml import to_toml

    return _written(vm, "toml_stringify", to_toml, v)


def _written(vm: Vm, name: str, write: Write, v: Value) -> str:
    values = HarnValues(vm)
    try:
        return write(v, values.items, values.look)
    except ValueError as error:
        raise Thrown(f"{name}: {error}") from None
