"""The graph: operations, nodes, interpreter, text form. Imports `selc.diag` alone."""
