"""The regular expressions of Harn, rewritten for the `regex` library."""
