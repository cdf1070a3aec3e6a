"""The independent checker: trusts nothing but Python, Z3 and what stands in this folder.

It reads a manifest, and imports nothing else of selc: it has its own reader of the text of graphs,
its own meaning of every operation, its own search for paths and its own encoding for Z3.
`examine` is the entry. docs/checker.md says what each check establishes, and what none does.
"""
