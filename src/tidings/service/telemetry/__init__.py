"""Metrics, rates and log lines."""
