"""Graph patterns over RDF: G-ToPSS and the RSS cluster paper, filed by their rarest clause."""
