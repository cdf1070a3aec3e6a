"""The bitwise battery, and which configurations give equal bits."""
