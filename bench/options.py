"""What every benchmark can be asked on its command line."""

from __future__ import annotations

import argparse


def parser(doc: str | None, rounds: int) -> argparse.ArgumentParser:
    """``doc``: the script's docstring. ``rounds``: how many are measured unless told otherwise."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--rounds", type=int, default=rounds)
    made.add_argument("--check", action="store_true", help="exit 1 when a budget is missed")
    return made
