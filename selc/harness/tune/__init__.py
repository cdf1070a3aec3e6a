"""The fastest legal tuple for a workload, found by measuring a small part of the grid."""
