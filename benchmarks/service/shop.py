"""Visitors of a shop, as requests: shelves (contexts) with production's rankings, and clicks by position and appeal."""

import json
import random

from http_load import post

N_SHOWN, N_RANKED, N_CANDIDATES = 10, 20, 20
_EXAMINED = [1 / (1 + position) ** 0.5 for position in range(N_SHOWN)]


class Shop:
    """Shelves of 40 products each, 20 of which production ranks; all requests of a shelf but the session are alike."""

    def __init__(self, n_shelves: int, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._shelves = [self._shelf(number) for number in range(n_shelves)]
        self._appeal: dict[str, float] = {}
        self._visitors = 0

    def rank_request(self) -> bytes:
        """The page of a new visitor."""
        self._visitors += 1
        start = self._random.choice(self._shelves)
        return post("/v1/rank", start + b'"session_id":"visitor-%d"}' % self._visitors)

    def feedback_request(self, token: str, ranking: list[str]) -> bytes:
        """One click of that visitor."""
        weights = [seen * self._appeal_of(item) for seen, item in zip(_EXAMINED, ranking, strict=True)]
        (item,) = self._random.choices(ranking, weights)
        return post("/v1/feedback", f'{{"token":"{token}","clicks":["{item}"]}}'.encode())

    def _shelf(self, number: int) -> bytes:
        products = [f"shelf-{number}-product-{product}" for product in range(N_RANKED + N_CANDIDATES)]
        call = {"context": f"shelf-{number}", "base_ranking": products[:N_RANKED], "candidates": products[N_RANKED:]}
        return json.dumps(call | {"k": N_SHOWN}, separators=(",", ":")).encode()[:-1] + b","

    def _appeal_of(self, item: str) -> float:
        if item not in self._appeal:
            self._appeal[item] = self._random.betavariate(1, 4)
        return self._appeal[item]
