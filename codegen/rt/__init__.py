"""Modules that are copied into emitted packages as they are: the standard library only."""
