"""The constants of safe-draw, each with its reason. docs/policies/safe-draw.md says how they were chosen."""

PAGES_OF_A_PLAN = 16
"""A plan is made again whenever this number of pages was learnt, or a pair is certified: plans cost more than pages."""

# --- trust: production's ranking is likely right, and clicks outweigh that soon ---

TRUST = 0.977
"""How sure we are, before any click, that production has two items in the right order: two standard errors."""

CLICKED_PAGES_OF_TRUST = 100.0
"""The prior fades with the clicked pages of a context: to 1/e after this number of them."""

# --- click rates ---

FIRST_CLICKS = 0.1
"""The clicks on one page with which a place begins."""

# --- small catalogues ---

RATE_SHARE = 0.5
"""How much the evidence of click-through rates counts beside that of bets: they see the same clicks."""

LEADS = 1.5
"""An item moves up in the working order when the evidence for it is above this: odds of about 11 to 1."""

RESERVE = 7
"""Flat pages start from an order whose worst case leaves this number of wrong pairs to spend: one item from outside."""

STEP, STEP_OUTSIDE = 0.5, 0.8
"""The smallest fall from one item of the working order to the next, and to an item outside: nothing is certain."""

FLAT, FLAT_CERTAIN, FLAT_OUTSIDE = 0.3, 3.0, 3.0
"""On a flat page: the fall between the last two, if their order is certain, and to the other items outside."""

FLAT_SHARE, RESERVE_SHARE = 0.5, 0.25
"""The share of flat pages, and of others with reserve, where the limit stands in the way of what should be tried."""

# --- certificates that end ---

EXCHANGED = 0.084
"""How often the items of the target are exchanged in a draw."""

EXPOSURE, CALMED_EXPOSURE = 32.0, 4.0
"""What the clicks of an item count for at most, in expected clicks: when an epoch begins, and after an alarm."""

PLACE_PAGES = 1000
"""What the clicks of places count for at most then, in pages."""

# --- large catalogues ---

GUESS_FALL, GUESS_CLICKS = 0.25, 2.0
"""The guess of candidate c falls as c^-GUESS_FALL, by production's order. It is worth GUESS_CLICKS expected clicks."""

RACERS = 3
"""Members of a race at most: with more of them none is compared enough."""

MOST_POSITIONS = 63 - RACERS
"""Which exchanges a page allows is one bit of a word for each place, the hidden ones of a race among them."""

CLEARLY = 1.5
"""A contender that leads the defender by more standard errors than this is a member before others are drawn."""

CONTENDERS, HOPE = 64, 2.0
"""Members are drawn from the CONTENDERS items with the largest th plus HOPE standard errors: others seldom win."""

POOR = 3
"""While certified moves have earned less than this, a page has a race with probability SLOT_SHARE only."""

SLOT_SHARE = 0.7
"""The other pages of a poor catalogue compare the items of the leader; so that certificates come, half of them flat."""

GAP, FLAT_GAP = 0.5, 0.1
"""Between neighbours of the order: the least gap, and that of flat pages."""

TIGHT = 8.0
"""A plan is tight when a draw exchanges more pairs on average than its slack and this: then few draws are safe."""

FLOOR_STEP = 1.25
"""The least gap of a tight plan grows by this factor until the draw exchanges no more pairs than the slack allows."""

LEAD = 0.5
"""A member of the race that leads the defender has a weight of at most exp(LEAD)."""

MOST_DRAWS = 64
"""Orders that are drawn for a page at most; if none is safe the plan's own order is shown."""
