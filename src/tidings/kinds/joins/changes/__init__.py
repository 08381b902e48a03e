"""Events -> changes of rows, and which of them count."""
