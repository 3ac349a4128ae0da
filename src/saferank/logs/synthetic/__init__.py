"""A synthetic log with planted users: what they do, its lines, and the file."""

from saferank.logs.synthetic.writing import planted_instances, synthesize_log, write_synthetic_log

__all__ = ["planted_instances", "synthesize_log", "write_synthetic_log"]
