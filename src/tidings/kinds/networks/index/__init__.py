"""A network by numbers: names, groups, wiring, and its expressions as rows of an index of filters."""
