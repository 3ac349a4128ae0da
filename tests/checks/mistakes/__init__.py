"""Twenty typical mistakes of authors of plug-ins, one file each. Each is a sound plug-in with one fault.

A line with the comment ``# FAULT`` is the one that the message must name.
"""
