"""The loops of joins: arrays in, arrays out."""
