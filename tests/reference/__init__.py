"""Literal slow transcriptions of the algorithms: standard library only, nothing from src, never optimised."""
