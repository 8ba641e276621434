"""How files are reached: what a path leads to, under which rules, and what is left while one is written."""
