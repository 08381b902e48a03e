"""What all tests share: one Hypothesis profile, the same cases on every run."""

from hypothesis import settings

settings.register_profile("tidings", derandomize=True, deadline=None)
settings.load_profile("tidings")
