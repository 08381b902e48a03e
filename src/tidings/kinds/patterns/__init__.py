"""Graph patterns over RDF, from G-ToPSS and the RSS cluster paper; indexed by their rarest clause."""
