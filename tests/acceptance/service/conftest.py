"""The harmful plug-in registers a policy when it is imported, so pytest must not look for doctests in it."""

collect_ignore = ["contrary_policy.py"]
