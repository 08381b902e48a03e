"""The index of a network: numbered names, groups, wiring, and expressions as rows of an index of filters."""
