"""What the static checks warn of before a program runs. Spec: 03 §1."""

from __future__ import annotations

import sys

from harnpy.cli.console import has_colour
from harnpy.syntax.rendering import rendered
from harnpy.vm.unit import Unit


def show_warnings(unit: Unit) -> None:
    """Write the warnings about ``unit`` to stderr."""
    colour = has_colour(sys.stderr)
    for finding in unit.warnings:
        sys.stderr.write(rendered(finding.diagnostic(unit.lines), unit.lines, unit.file, colour=colour))
