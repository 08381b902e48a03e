"""One file for each group of reproduced figures; `run(scale)` yields them, scale 1 being the papers' sizes."""
