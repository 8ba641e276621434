"""JSON text, read with exact error positions."""
