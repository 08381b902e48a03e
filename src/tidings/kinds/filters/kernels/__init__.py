"""The compiled loops of filters."""
