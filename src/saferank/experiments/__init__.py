"""``saferank.simulate`` and the ``Results`` it returns: tables, figures, comparisons, files.

May import the simulator and the report's figures; nothing here is compiled.
"""
