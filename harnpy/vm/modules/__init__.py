"""Importing: where a path leads, what a module declares, what an import brings, and doing it."""
