"""What the static checks warn of before a program runs. Spec: 03 §1."""

from __future__ import annotations

import sys

from harnpy.cli.console import has_colour
from harnpy.vm.unit import Unit


def show_warnings(unit: Unit) -> None:
    """Write the warnings about ``unit`` to stderr."""
    colour = has_colour(sys.stderr)
    for finding in unit.warnings:
        sys.stderr.write(finding.diagnostic(unit.lines).render(unit.lines, unit.file, colour=colour))
