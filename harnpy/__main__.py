"""`python -m harnpy` is the `harnpy` command."""

from harnpy.cli.main import entry

if __name__ == "__main__":
    entry()
