"""Stores in folders: versions of an index, the event log, and what streams have learnt of operators."""
