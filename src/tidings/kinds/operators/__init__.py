"""Operators: expensive user functions of an event, evaluated as rarely as possible."""
