"""From the residual graph to C text, Python text, a header and the manifest."""
