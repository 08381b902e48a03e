"""Simulates a network of a thousand nodes in one process: traffic, hops, stress and latency of schemes. Select-joins, 6."""
