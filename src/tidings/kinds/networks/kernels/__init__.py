"""The compiled loops of networks: arrays in, results into arrays that are given."""
