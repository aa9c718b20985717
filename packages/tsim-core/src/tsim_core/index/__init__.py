"""Indices in memory, derived from the store and extended as it grows."""
