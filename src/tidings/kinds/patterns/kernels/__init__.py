"""The compiled loops of pattern matching: arrays in, arrays out."""
