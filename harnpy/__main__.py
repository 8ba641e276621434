"""`python -m harnpy` is the `harnpy` command."""

import os
import sys

if __name__ == "__main__":
    # Python puts the working directory first: what lies there would be imported in place of real modules.
    if not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(__file__)):
        del sys.path[0]

    from harnpy.cli.main import entry

    entry()
