"""Seeded workloads, baselines, the papers' figures and the bars that must hold: `python -m benchmarks`."""
