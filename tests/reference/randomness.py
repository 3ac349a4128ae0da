"""xoshiro256++ on Python integers, and the draws made from its words."""

_MASK = 2**64 - 1


def _rotated_left(x: int, by: int) -> int:
    return ((x << by) | (x >> (64 - by))) & _MASK


class Xoshiro:
    """xoshiro256++ on a state of four 64-bit words, copied from the caller's."""

    def __init__(self, state: list[int]) -> None:
        assert len(state) == 4
        assert all(0 <= word <= _MASK for word in state)
        assert any(state)
        self.state = list(state)

    def word(self) -> int:
        """The next 64 random bits."""
        s0, s1, s2, s3 = self.state
        result = (_rotated_left((s0 + s3) & _MASK, 23) + s0) & _MASK
        shifted = (s1 << 17) & _MASK
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= shifted
        s3 = _rotated_left(s3, 45)
        self.state = [s0, s1, s2, s3]
        return result

    def uniform(self) -> float:
        """A number in [0, 1): the upper 53 bits of one word, divided by 2^53."""
        return (self.word() >> 11) / 2**53

    def below(self, n: int) -> int:
        """A whole number in 0..n-1: the upper half of (upper half of one word) * n; the first 2^32 mod n lower halves
        are rejected and drawn again.
        """
        rejected = 2**32 % n
        while True:
            product = (self.word() >> 32) * n
            if product % 2**32 >= rejected:
                return product // 2**32


def shuffle_front(rng: Xoshiro, items: list[int], start: int, stop: int, end: int) -> None:
    """Fill places start..stop-1 with a uniform draw without replacement from items[start:end], in place."""
    for place in range(start, min(stop, end - 1)):
        other = place + rng.below(end - place)
        items[place], items[other] = items[other], items[place]


_FACTORS = [0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93]


def page_stream(users: Xoshiro) -> Xoshiro:
    """The stream of one page: each word of the users' state, xor itself shifted down by 32, times its factor. Then the
    users' stream moves on by one word.
    """
    state = [((word ^ (word >> 32)) * factor) & _MASK for word, factor in zip(users.state, _FACTORS, strict=True)]
    users.word()
    return Xoshiro(state)
