"""Matching with an index whose subscriptions are divided: stage 1 matches its front, stage 2 its parts."""
