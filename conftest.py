"""Lets pytest collect the conformance programs, wherever it is pointed at."""

pytest_plugins = ["tests.conformance_plugin"]
