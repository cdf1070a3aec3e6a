"""Pin value range analysis: candidates and legality, with evidence."""
