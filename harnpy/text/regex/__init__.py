"""The regular expressions of Harn: the dialect, rewritten for the `regex` library, and matching with it."""
