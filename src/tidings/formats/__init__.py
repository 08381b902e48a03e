"""Bytes from outside made safe and read: XML, RDF, JSON lines."""
