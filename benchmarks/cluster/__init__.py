"""A cluster as RSS cluster describes it: its workload, its algorithms as baselines, and ours beside them."""
