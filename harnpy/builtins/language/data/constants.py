"""The global numbers, written out: `math` would cost every start its import. Spec: 02 §22."""

from __future__ import annotations

CONSTANTS = {"pi": 3.141592653589793, "e": 2.718281828459045}
