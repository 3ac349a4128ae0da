"""What closed pages have taught a context, and the pages that follow from it.

* ``knowledge``: a fold over closed pages in display order. It holds the evidence of a policy and its certificates,
  and nothing that depends on which page is asked for next.
* ``view``: knowledge as one call sees it. A plan is derived from the evidence and the call's own base ranking,
  candidates and page size, and a page is a pure function of the plan and of coins.
* ``certified``: what follows from certificates, and the leaders that certified exchanges make of a ranking.
* ``page_check``: the check of every page before it leaves. It knows certificates and rankings, and no policy.
* ``lessons``: records of closed pages, range-checked and laid out for the compiled fold.

May import the live learner, statistics and safety, and the page record of the store; knows no clock, no log and no
HTTP.
"""
