"""The HTTP API: one router for each resource, and the models from which OpenAPI is generated.

Requests are validated by their models, except events, which have readers of their own. Responses are built by one
function for each model. The names of the operations are the names of a generated client's methods.
"""
