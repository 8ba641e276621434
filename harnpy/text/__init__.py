"""Text formats that know no values of the language."""
