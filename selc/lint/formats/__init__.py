"""Output formats: full, concise, json, sarif, github. Each is a function from findings to text."""
