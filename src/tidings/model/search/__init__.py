"""Word search: words of texts, searches for them, and an index of searches."""
