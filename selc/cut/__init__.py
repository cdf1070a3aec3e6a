"""The minimum vertex cut that chooses pins."""
