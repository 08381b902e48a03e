"""The HTTP API: one router for each thing that can be named, and the models that OpenAPI tells of.

What comes in is checked by its model, but for events: those have readers of their own. What goes out is built once,
by the function beside its model. Names of operations are those of a generated client's methods.
"""
