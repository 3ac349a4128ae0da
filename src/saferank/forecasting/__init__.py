"""What safe re-ranking would bring a team: click models of its own log, its own traffic, simulated before a switch-on.

``forecast.py`` is the function, ``worlds.py`` the fitted click model, those of drawn logs and how many pages each query
has, ``playing.py`` the runs, ``outcome.py`` what comes out and how sure it is, and ``page.py`` the page. May
import experiments, reporting, fitting and simulation.
"""
