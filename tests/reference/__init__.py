"""Literal slow transcriptions of ALGORITHMS.md: standard library only, nothing from src, never optimised."""
