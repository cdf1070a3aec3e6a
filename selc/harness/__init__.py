"""Benchmarks, bitwise batteries and tuning on real kernels.

Works from emitted selectors, manifests and profiles alone: nothing of the compiler is imported, so
that it runs on a GPU machine with neither libcst nor z3. torch and triton are imported when a
kernel is asked for.
"""
