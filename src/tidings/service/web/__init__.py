"""HTTP: the API, the pages, XML-RPC, and the middleware before all of them."""
