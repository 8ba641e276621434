"""Running tests: discovery, sandboxes, verdicts, results. For `harnpy test`."""
