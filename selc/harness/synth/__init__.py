"""Profiles made from a description of a workload, where none was recorded.

An engine is simulated: continuous batching, chunked prefill, a prefix cache, and a model of how
long a step takes. Every step is one launch of each family. What a selector is asked for a step
follows from its requests; nothing is measured here.
"""
