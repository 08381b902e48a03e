"""The compiled loops of operators: arrays in, results into arrays that are given."""
