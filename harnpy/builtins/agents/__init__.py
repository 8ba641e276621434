"""Models, sessions, agents and workflows: thin adapters to the domain packages."""
