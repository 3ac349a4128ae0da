"""The policy safe-draw of docs/algorithms/safe-draw-to-the-letter.md, more than 12 items, live or simulated.

Random words. A new plan takes one uniform number if it is poor and there are items outside; with a slot those of the
race, which are Gamma numbers; and, poor and without slot, one for flat. A page takes one for each place of its order
each time the order is drawn, and then, with a slot, one for the slot's item.

Python places count from 0: place k of the document is row[k - 1].
"""

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, erfc, exp, log, sqrt

from tests.reference.randomness import Xoshiro
from tests.reference.safe_draw.appeal import Appeal
from tests.reference.safe_draw.exact import evidence_of
from tests.reference.safe_draw.prices import Prices, above

PAGES_OF_A_PLAN = 16
STAKE_WEIGHTS = [0.01, 0.04, 0.15, 0.25, 0.25, 0.18, 0.10, 0.02]
LARGEST_GAP = 12.0
UNSAFE_ORDERS = 64
NO_SLOT = -1


def gap(evidence: float) -> float:
    """gap(E), at most 12."""
    if evidence <= 0:
        return 0.0
    t = erfc(sqrt(evidence))
    return min(LARGEST_GAP, log((2 - t) / t)) if t > 0 else LARGEST_GAP


def total_of(weights: list[float]) -> float:
    total = 0.0
    for weight in weights:
        total += weight
    return total


def draw(weights: list[float], total: float, u: float) -> int:
    """The number drawn from numbered weights with a uniform number u."""
    point = u * total
    for number, weight in enumerate(weights):
        point -= weight
        if point < 0:
            return number
    return max(number for number, weight in enumerate(weights) if weight > 0)


@dataclass
class SlotPlan:
    """The order and its weights; with a slot its place, d and the members, and their weights."""

    order: list[int]
    order_weights: list[float]
    slot: int
    occupants: list[int]
    occupant_weights: list[float]
    flat: bool
    least_gap: float = 0.0
    served: int = 0

    def page(self, order: list[int], occupant: int) -> list[int]:
        """The page with this order around the slot."""
        return order if self.slot == NO_SLOT else [*order[: self.slot], occupant, *order[self.slot :]]


@dataclass
class SlotPage:
    """A page, the place of the slot, and what is needed to bet: for two places of the order or a hidden occupant.

    ``ratio`` has Q(page') / Q(page) for each pair (clicked place, other place) whose exchange is possible. Hidden
    occupants are at the places from K on.
    """

    shown: list[int]
    hidden: list[int]
    slot: int
    ratio: dict[tuple[int, int], float]

    def row(self) -> list[int]:
        return self.shown + self.hidden

    def group(self, a: int) -> list[int]:
        """The other places of the group of place a, in order."""
        places = range(len(self.shown))
        if a == self.slot:
            return [len(self.shown) + h for h in range(len(self.hidden))]
        return [b for b in places if b not in (a, self.slot)]


class SafeDrawSlots(Prices):
    """safe-draw for more than 12 items."""

    def __init__(self, n_items: int, n_positions: int, alpha: float, rng: Xoshiro, trust: float = 0.5) -> None:
        super().__init__(alpha)
        self.rng = rng
        self.appeal = Appeal()
        self.e = evidence_of(log(trust / (1 - trust)))
        self.came: dict[int, int] = {}
        self.order: list[int] = []  # the candidate order
        self.regroup(list(range(n_positions)), list(range(n_positions, n_items)))

    def call(self, base: list[int], candidates: list[int]) -> None:
        """A call gives production's ranking and the candidates in an order of its own. Absent items come after."""
        self.order = base + candidates + [x for x in self.order if x not in base + candidates]
        self.regroup(base, candidates)

    def regroup(self, base: list[int], others: list[int]) -> None:
        """Items come and go, production's ranking changes; new items are last in the candidate order."""
        self.order += sorted(x for x in base + others if x not in self.order)
        self.seat(base, others)
        for item in base + others:
            self.came.setdefault(item, self.clicked_pages)
        self.appeal.base, self.appeal.candidates = base, [x for x in self.order if x in others]
        self.plan: SlotPlan | None = None
        self.defender: int | None = None  # of the race before
        self.members: list[int] = []

    # The price of a page around the slot.

    def safe_around_slot(self, plan: SlotPlan, order: list[int]) -> bool:
        """The page is safe for each of d and the members in the slot."""
        if plan.slot == NO_SLOT:
            return self.safe(order)
        return all(self.safe(plan.page(order, occupant)) for occupant in plan.occupants)

    # The race.

    def can_be_hidden(self, q: int) -> bool:
        below = [z for z in self.reference[q + 1 :] if not self.certified(z, self.reference[q])]
        return self.n_items - self.n_positions + len(below) <= self.allowance() + self.income

    def new_defender(self) -> int:
        hideable = [self.reference[q] for q in range(self.n_positions) if self.can_be_hidden(q)]
        weakest = min(reversed(hideable), key=self.appeal.th)
        before = self.defender
        return before if before in hideable and self.appeal.z(before, weakest) <= 1 else weakest

    def may_race(self, x: int) -> bool:
        assert self.defender is not None
        return x in self.present and x not in self.reference and not self.certified(self.defender, x)

    def race(self) -> bool:
        """Hold a race. Whether the plan has a slot."""
        self.defender = d = self.new_defender()
        self.members = [x for x in self.members if self.may_race(x) and self.appeal.z(x, d) > 1.5]
        while len(self.members) < 3:
            joining = [x for x in self.appeal.seen if self.may_race(x) and x not in self.members]
            unseen = [x for x in self.order if x in self.present and x not in self.appeal.seen]
            joining += [x for x in unseen if self.may_race(x) and x not in self.members][:1]
            if not joining:
                break
            draws = [self.appeal.drawn_th(x, self.rng) for x in joining]
            self.members.append(joining[draws.index(max(draws))])
        draws = [self.appeal.drawn_th(x, self.rng) for x in self.members]
        return any(drawn > self.appeal.th(d) for drawn in draws)

    # The prior.

    def prior(self, u: int, v: int) -> float:
        """What is left of it for production's order of the two, negative if production has v above u."""
        if self.e == 0 or (u not in self.base and v not in self.base):
            return 0.0
        left = self.e * exp(-(self.clicked_pages - max(self.came[u], self.came[v])) / 100)
        return left if above(u, v, self.base) else -left

    def looks_better(self, lower: int, upper: int) -> bool:
        prior = self.prior(upper, lower)
        if prior == 0:
            return self.appeal.th(lower) > self.appeal.th(upper)
        z = self.appeal.z(lower, upper)
        return z * abs(z) > 2 * prior

    # The plan.

    def has_slot(self, poor: bool) -> bool:
        """1. and 2."""
        if self.n_items == self.n_positions:
            return False
        if poor and self.rng.uniform() >= 0.7:
            return False
        return self.race()

    def new_plan(self) -> SlotPlan:
        poor = self.income < 3
        slot = self.has_slot(poor)
        flat = not slot and poor and self.rng.uniform() < 0.5
        occupants = [self.defender, *self.members] if slot and self.defender is not None else []
        order = [x for x in self.reference if not slot or x != self.defender]
        plan = SlotPlan(order, [], self.n_positions - 1 if slot else NO_SLOT, occupants, [], flat)
        unsorted, slack = list(order), self.slack(plan)
        self.sort_order(plan, 0)
        self.weigh(plan)
        if exchanged_pairs(plan.order_weights) > self.slack(plan) + 8:
            plan.order = unsorted
            self.tighten(plan, slack)
        elif slot and self.rises(plan):
            self.place_slot(plan)
        return plan

    def slack(self, plan: SlotPlan) -> int:
        """Of the order with the slot where it is."""
        pages = [plan.page(plan.order, occupant) for occupant in plan.occupants] or [plan.order]
        return self.allowance() + self.income - max(self.price(page) for page in pages)

    def tighten(self, plan: SlotPlan, slack: int) -> None:
        """8."""
        self.sort_order(plan, slack - slack // 2)
        plan.least_gap = 0.1
        self.weigh(plan)
        while plan.least_gap < LARGEST_GAP and exchanged_pairs(plan.order_weights) > self.slack(plan):
            plan.least_gap *= 1.25
            self.weigh(plan)

    def sort_order(self, plan: SlotPlan, reserve: int) -> None:
        """4."""
        for _ in range(self.n_positions):
            changed = False
            for p in range(len(plan.order) - 1):
                upper, lower = plan.order[p], plan.order[p + 1]
                if self.looks_better(lower, upper) and not self.certified(upper, lower):
                    before = plan.order
                    plan.order = [*before[:p], lower, upper, *before[p + 2 :]]
                    if self.slack(plan) >= reserve:
                        changed = True
                    else:
                        plan.order = before
            if not changed:
                break

    def rises(self, plan: SlotPlan) -> bool:
        """5. With a prior the slot stays at place K unless a uniform number is small."""
        prior = self.prior(plan.occupants[0], plan.occupants[1])
        return prior <= 0 or self.rng.uniform() < 2 / (1 + exp(gap(prior)))

    def place_slot(self, plan: SlotPlan) -> None:
        """5."""
        for place in range(ceil(self.n_positions / 2), self.n_positions + 1):
            plan.slot = place - 1
            if self.safe_around_slot(plan, plan.order):
                return
        raise AssertionError("the page with the slot at place K is safe")

    def weigh(self, plan: SlotPlan) -> None:
        """6. and 7."""
        plan.order_weights = [1.0] if plan.order else []
        for u, v in pairwise(plan.order):
            fall = max(plan.least_gap, self.gap_in_order(u, v, plan.flat))
            plan.order_weights.append(plan.order_weights[-1] * exp(-fall))
        plan.occupant_weights = []
        for x in plan.occupants:
            d = plan.occupants[0]
            lead = self.bet_evidence(x, d) + self.prior(x, d)
            raised = min(0.5, gap(lead)) - gap(-lead)
            plan.occupant_weights.append(1.0 if x == d else exp(raised))

    def gap_in_order(self, u: int, v: int, flat: bool) -> float:
        if self.certified(u, v):
            return LARGEST_GAP
        if flat:
            return max(0.1, gap(self.prior(u, v)))
        if not above(u, v, self.reference):
            return 0.5
        return max(0.5, gap(self.bet_evidence(u, v) + self.prior(u, v)))

    # The page.

    def drawn_order(self, plan: SlotPlan) -> list[int]:
        """Numbers of the order's items, without replacement."""
        weights = list(plan.order_weights)
        numbers = []
        for _ in plan.order:
            number = draw(weights, total_of(weights), self.rng.uniform())
            numbers.append(number)
            weights[number] = 0.0
        return numbers

    def choose(self) -> SlotPage:
        if self.plan is None or self.plan.served == PAGES_OF_A_PLAN:
            self.plan = self.new_plan()
        plan = self.plan
        plan.served += 1
        for _ in range(UNSAFE_ORDERS):
            numbers = self.drawn_order(plan)
            order = [plan.order[number] for number in numbers]
            if self.safe_around_slot(plan, order):
                ratios = self.ratios_of_order(plan, order, [plan.order_weights[number] for number in numbers])
                break
        else:
            order, ratios = plan.order, {}
        if plan.slot == NO_SLOT:
            return SlotPage(order, [], NO_SLOT, ratios)
        return self.with_occupant(plan, order, ratios)

    def with_occupant(self, plan: SlotPlan, order: list[int], ratios: dict[tuple[int, int], float]) -> SlotPage:
        """The slot's item is drawn; the others are hidden."""
        weights = plan.occupant_weights
        number = draw(weights, total_of(weights), self.rng.uniform())
        others = [o for o in range(len(weights)) if o != number]
        for h, other in enumerate(others):
            ratios[plan.slot, self.n_positions + h] = weights[other] / weights[number]
        shown = plan.page(order, plan.occupants[number])
        return SlotPage(shown, [plan.occupants[o] for o in others], plan.slot, ratios)

    def ratios_of_order(self, plan: SlotPlan, order: list[int], weights: list[float]) -> dict[tuple[int, int], float]:
        """Q(page') / Q(page) by places of the page, for the exchanges that are possible."""
        ratios = {}
        places = [p for p in range(self.n_positions) if p != plan.slot]  # of the order, on the page
        for upper in range(len(order)):
            for lower in range(upper + 1, len(order)):
                after = list(order)
                after[upper], after[lower] = order[lower], order[upper]
                if self.safe_around_slot(plan, after):
                    ratio = ratio_of_exchange(weights, upper, lower)
                    ratios[places[upper], places[lower]] = ratios[places[lower], places[upper]] = ratio
        return ratios

    # Clicks, at once or late.

    def decided(self, i: int, j: int) -> bool:
        capital = 0.0
        for weight, capital_of_stake in zip(STAKE_WEIGHTS, self.l[i, j], strict=True):
            capital += weight * exp(capital_of_stake)
        return capital >= exp(self.needed(i, j)) / 8

    def learn(self, page: SlotPage, clicks: list[int]) -> None:
        self.appeal.count(page.shown, clicks)
        self.clicked_pages += int(any(clicks))
        row = page.row()
        clicked = [a for a in range(len(page.shown)) if clicks[a]]
        places = [(a, b) for a in clicked for b in page.group(a) if b not in clicked]
        here = [(a, b) for a, b in places if row[a] in self.present and row[b] in self.present]
        for a, b in here:
            if not self.settled_for_good(row[a], row[b]) and (a, b) in page.ratio:
                self.bet(row[a], row[b], 1 / (1 + page.ratio[a, b]))
        before = len(self.certificates)
        for a, b in here:
            if not self.settled_for_good(row[a], row[b]) and self.decided(row[a], row[b]):
                self.certify(row[a], row[b])
        if len(self.certificates) > before:
            self.make_reference()
            self.plan = None


def exchanged_pairs(weights: list[float]) -> float:
    """How many pairs of an order with these weights a draw has exchanged, on average."""
    return sum(v / (u + v) for a, u in enumerate(weights) for v in weights[a + 1 :])


def ratio_of_exchange(weights: list[float], upper: int, lower: int) -> float:
    """Q(page') / Q(page) for two places of the order, whose weights are given as the order was drawn."""
    ratio = 1.0
    for k in range(upper + 1, lower + 1):
        rest = total_of(weights[k:])  # D(k)
        ratio *= rest / (rest + weights[upper] - weights[lower])
    return ratio
