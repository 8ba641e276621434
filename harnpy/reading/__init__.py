"""Reading values that come from outside: dicts with known keys, leniently or strictly."""
