"""Reports on results: averages over instances, figures, verdicts on the paper's claims, one page.

``report.py`` is the function ``saferank.report``. May import the simulator's results, fitting, policies and click
models; simulates nothing.
"""
