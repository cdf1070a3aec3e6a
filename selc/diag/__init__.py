"""Spans, diagnostics, the rules registry and renderers. Imports the standard library only."""
