"""Whose pages count, beyond one page per visitor and window.

* ``votes``: of the comparisons of one visitor and one pair only the first informative one of an epoch counts.
* ``masks``: pages without the comparisons that do not count, laid out for the compiled fold.
* ``order_watch``: an alarm when pages that were clicked are not those that were drawn.
* ``visitors``: who looks at a page, by keyed hashes, and the coins of the page.
* ``sources``: so many pages of one source count in a day.
"""
