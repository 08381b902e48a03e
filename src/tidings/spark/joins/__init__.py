"""Joins on Spark: the query that keeps the rows of tables and notifies join subscriptions of their deltas."""
