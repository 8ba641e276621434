"""The `harnpy` command: one module a command, each thin. May import every other package. Spec: 09.

`main` reads argv and `run` runs a file; neither imports a command-line framework, since a script's
start-up time is theirs. Every other command is a click command that `app` loads when it is named.
"""

#: Exit statuses. Spec: 09 §1.2.
OK = 0
FAILED = 1
USAGE = 2
NOTHING = 5
INTERRUPTED = 124


class Stopped(KeyboardInterrupt):
    """SIGINT or SIGTERM ends the command. Who catches `KeyboardInterrupt` otherwise lets this pass."""
