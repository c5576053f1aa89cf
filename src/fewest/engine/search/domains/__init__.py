"""Searches over whole domains: any value, many rows at once, and the nearest values of a given set."""
