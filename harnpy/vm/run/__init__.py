"""A running program: calls, methods, tasks, and the backtrace of what failed."""
