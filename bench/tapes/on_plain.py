"""The agent by itself."""

from time_machine_agent import Kit, main

main(Kit())
