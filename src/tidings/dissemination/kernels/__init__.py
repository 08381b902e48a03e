"""The compiled loops of dissemination."""
