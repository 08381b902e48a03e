"""Serves HTTP: the API, the pages, XML-RPC, and the middleware in front of them."""
