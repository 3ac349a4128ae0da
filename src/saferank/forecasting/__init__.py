"""What safe re-ranking would bring a team: click models of its own log, its own traffic, simulated before a switch-on.

``forecast.py`` is the function, ``traffic.py`` how many pages each query has, ``worlds.py`` the fitted click model and
those of drawn logs, ``playing.py`` the runs, ``bands.py`` how sure a number is, ``outcome.py`` what comes out, and
``page.py`` the page. May import experiments, reporting, fitting and simulation.
"""
