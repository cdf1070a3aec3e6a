"""Graph to graph: simplification, slicing, dependence."""
