"""Errors that cross between processes say the same on the other side. Spec: 09 §16.3."""

from __future__ import annotations

from harnpy.isolation.protocol import Frames, Packing, Unpacking, frame, packed, unpacked
from harnpy.syntax.diagnostic import Diagnostic, Edit, Fix, Lines, Related, SourceFault


def test_a_diagnostic_crosses_with_all_it_has() -> None:
    lines, other = Lines("let a = b\n"), Lines("pub let b = 1\n")
    span = lines.span(8, 9)
    related = (Related("here", lines.span(4, 5)), Related("there", other.span(8, 9), "b.harn", other))
    fix = Fix([Edit(8, 9, "1")], safe=False)
    found = Diagnostic("error", "m", span, "l", None, ("n",), code="c", related=related, fix=fix)
    fault = SourceFault("m", [found], lines.source, "a.harn")
    sent = frame(("failed", packed(fault)), Packing(lambda value: None).pack)
    ((_, received),) = Frames(Unpacking(lambda *_: None).unpack).feed(sent)
    crossed = unpacked(received)
    assert isinstance(crossed, SourceFault)
    assert crossed.render() == fault.render()
    assert ":::" in fault.render()
    (again,) = crossed.diagnostics
    assert (again.code, again.fix and again.fix.safe) == ("c", False)
