"""The graph: operations, nodes, interpreter, text form. Imports the standard library only (and `selc.diag`)."""
