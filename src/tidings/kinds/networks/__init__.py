"""Networks of intermediaries: events reach a node only along paths whose every node and edge accepts them."""
