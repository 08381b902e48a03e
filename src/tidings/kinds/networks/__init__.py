"""Networks of intermediaries: an event reaches a node only along paths on which every node and edge accepts it."""
