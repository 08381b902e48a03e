"""The way in: request bodies and followed feeds -> events in the log, each once."""
