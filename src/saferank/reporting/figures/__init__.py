"""Figures of a report, drawn with matplotlib."""
