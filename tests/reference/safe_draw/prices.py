"""The reference R, its income m and the price of a page: docs/algorithms/safe-draw-to-the-letter.md."""

from math import floor

from tests.reference.safe_draw.evidence import Evidence


def above(r: int, z: int, row: list[int]) -> bool:
    """r is shown, and z is shown below it or not at all."""
    return r in row and (z not in row or row.index(z) > row.index(r))


class Prices(Evidence):
    """What is shown, what is known, and what a page may cost."""

    def seat(self, base: list[int], others: list[int]) -> None:
        """Production's ranking, closed up, and the other items that are present."""
        self.base = base
        self.present = sorted(base + others)
        self.n_items, self.n_positions = len(self.present), len(base)
        self.make_reference()

    def certified(self, x: int, y: int) -> bool:
        return (x, y) in self.over

    # The reference R and its income m.

    def make_reference(self) -> None:
        self.reference = list(self.base)
        self.income = 0
        while self.exchange_neighbours() or self.exchange_distant():
            pass

    def exchange_neighbours(self) -> bool:
        """1."""
        r, moved = self.reference, False
        for p in range(self.n_positions - 1):
            if self.certified(r[p + 1], r[p]):
                r[p], r[p + 1] = r[p + 1], r[p]
                self.income += 1
                moved = True
        return moved

    def exchange_distant(self) -> bool:
        """2."""
        r = self.reference
        outside = [x for x in self.present if x not in r]
        for p in range(self.n_positions - 1, -1, -1):
            a = r[p]
            better = [b for b in r[p + 1 :] + outside if self.certified(b, a)]
            if better:
                b = max(better, key=lambda x: (self.n_certified_by(x), -self.first_certificate(x)))
                between = r[p + 1 : r.index(b)] if b in r else r[p + 1 :]
                self.income += 1 + 2 * len([z for z in between if self.certified(b, z) and self.certified(z, a)])
                if b in outside:
                    self.income += len([z for z in outside if self.certified(b, z) and self.certified(z, a)])
                self.reference = [{a: b, b: a}.get(x, x) for x in r]
                return True
        return False

    def n_certified_by(self, x: int) -> int:
        return len([z for z in self.present if self.certified(x, z)])

    def first_certificate(self, x: int) -> int:
        """When x first occurred in a certificate; of the two items of one certificate, the better one first."""
        return [item for pair in self.certificates for item in pair].index(x)

    # The price of a page.

    def price(self, page: list[int]) -> int:
        price = 0
        for k, r in enumerate(page, start=1):
            if r in self.reference:
                before = [z for z in self.reference if above(z, r, self.reference)]
                price += len([z for z in before if not above(z, r, page) and not self.certified(r, z)])
            else:
                over_above = [z for z in page if above(z, r, page) and self.certified(r, z)]
                price += self.n_items - k - self.n_certified_by(r) + len(over_above)
        return price

    def allowance(self) -> int:
        return floor(self.n_items - self.n_positions / 2)

    def safe(self, page: list[int]) -> bool:
        return self.price(page) - self.income <= self.allowance()
