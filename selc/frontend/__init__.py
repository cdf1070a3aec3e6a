"""From source text and facts to the graph G0; the only importer of libcst."""
