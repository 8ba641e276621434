"""What a Harn value is, and what every value can do: equality, display, operators, iteration, updates."""
