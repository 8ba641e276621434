"""Where the two halves meet: what domain packages get of a Vm, and their errors and values as Harn's."""
