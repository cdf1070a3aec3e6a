"""selc makes the kernel selection of an LLM engine independent of the batch."""

__version__ = "0.1.0"
