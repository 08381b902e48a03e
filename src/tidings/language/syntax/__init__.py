"""Text -> query tree: scanner, grammar, SPARQL, and the words, prefixes and units that they know."""
