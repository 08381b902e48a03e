"""Commands that speak to a running service over HTTP."""
