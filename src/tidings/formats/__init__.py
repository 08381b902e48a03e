"""Makes bytes from outside safe and reads them: XML, RDF, JSON lines."""
