"""Models, tools, people and agents: thin adapters to the domain packages."""
