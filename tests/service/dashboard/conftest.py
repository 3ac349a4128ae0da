"""Fixtures of the tests of the dashboard."""

from tests.service.dashboard.browsing import address, watched

__all__ = ["address", "watched"]
