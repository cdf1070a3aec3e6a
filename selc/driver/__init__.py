"""The pipeline: the only package that knows every layer."""
