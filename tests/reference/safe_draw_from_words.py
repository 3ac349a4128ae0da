"""safe-draw, written from the words of docs/algorithms/safe-draw-to-the-letter.md by somebody who had seen no code of it.

The page's own program had been taken out. What the words left open then (the eight stakes, the test of the Gamma
numbers, the end of an interval, that every alarm ends a plan) the page says now. Kept as it was written, but for the four
words of the seed, which are given here and were worked out by numpy then.
"""

# ruff: noqa
# mypy: ignore-errors
import math
from math import exp, log, log1p, expm1, erfc, sqrt, ceil, floor
from collections import deque

ETAS = [0.05, 0.15, 0.3, 0.5, 0.75, 1.1, 1.6, 2.3]  # found by a fit to explain()
SLOT_WEIGHTS = [0.01, 0.04, 0.15, 0.25, 0.25, 0.18, 0.10, 0.02]
M64 = (1 << 64) - 1
INF = math.inf


def rotl(x, k):
    return ((x << k) | (x >> (64 - k))) & M64


class Words:
    def __init__(self, words):
        self.s = list(words)

    def uniform(self):
        s = self.s
        result = (rotl((s[0] + s[3]) & M64, 23) + s[0]) & M64
        t = (s[1] << 17) & M64
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)
        return (result >> 11) * 2.0**-53

    def pick(self, weights, total=None):
        if total is None:
            total = 0.0
            for w in weights:
                total += w
        point = self.uniform() * total
        for k, w in enumerate(weights):
            point -= w
            if point < 0:
                return k
        return max(k for k, w in enumerate(weights) if w > 0)

    def normal(self):
        u = self.uniform()
        v = self.uniform()
        return sqrt(-2 * log1p(-u)) * math.cos(2 * math.pi * v)

    def gamma(self, shape):
        boost = shape < 1
        a = shape + 1 if boost else shape
        d = a - 1 / 3
        c = 1 / sqrt(9 * d)
        while True:
            x = self.normal()
            v = 1 + c * x
            if v <= 0:
                continue
            v = v * v * v
            u = self.uniform()
            if log1p(-u) < 0.5 * x * x + d - d * v + d * log(v):
                break
        g = d * v
        if boost:
            g *= (1 - self.uniform()) ** (1 / shape)
        return g


def gap(E):
    if E <= 0:
        return 0.0
    t = erfc(sqrt(E))
    return 1000.0 if t == 0 else log((2 - t) / t)


def inverse_gap(g):
    lo, hi = 0.0, 30.0
    for _ in range(60):
        mid = (lo + hi) / 2
        if gap(mid) < g:
            lo = mid
        else:
            hi = mid
    return hi


class SafeDraw:
    def __init__(self, K, L, alpha, words, trust, lifetime):
        self.K, self.L, self.alpha, self.D = K, L, alpha, lifetime
        self.A = floor(L - K / 2)
        self.rng = Words(words)
        self.small = L <= 12
        self.weights8 = [1.0] * 8 if self.small else [8 * w for w in SLOT_WEIGHTS]
        names = ["soft"] + (["cur", "prev", "surge"] if lifetime else [])
        self.l = {n: {} for n in names}  # stream -> (i, j) -> 8 logs
        self.S, self.I = {}, {}
        self.prior0 = inverse_gap(log(trust / (1 - trust))) if trust > 0.5 else 0.0
        self.clicked_pages = 0
        self.page_no = 0
        self.start = 0
        self.certs = []  # [better, worse, expires], in the order given
        self.dropped = {}
        self.given = 0
        self.alarms = 0
        self.rebuild()
        self.plan = None
        self.emax = inverse_gap(max(5, log(lifetime / 200))) if lifetime else 30.0
        self.maxgap = min(12, max(5, log(lifetime / 200))) if lifetime else 12.0
        self.level = max(7, log(lifetime / 27)) if lifetime else INF
        self.R = list(range(K))
        self.m = 0
        self.n = 0.0
        self.c = [0.0] * K
        self.C = [0.0] * L
        self.M = [0.0] * L
        self.tried = []
        self.pool = [0.0, 0.0]
        self.race = (None, [])
        self.wcache = {}
        self.matter_key = None

    # ---- evidence
    def logs(self, stream, i, j):
        return self.l[stream].setdefault((i, j), [0.0] * 8)

    def bet(self, i, j, p0):
        p = ceil(1024 * p0) / 1024
        q = (1024 - floor(1024 * p0)) / 1024
        for e, eta in enumerate(ETAS):
            up = eta - log1p(p * expm1(eta))
            down = -log1p(q * expm1(eta))
            for s in self.l:
                a, b = self.logs(s, i, j), self.logs(s, j, i)
                a[e] += up
                b[e] += down
                if s == "surge":
                    a[e] = max(0.0, a[e])
                    b[e] = max(0.0, b[e])
        self.S[i, j] = self.S.get((i, j), 0.0) + (1 - p0)
        self.S[j, i] = -self.S[i, j]
        self.I[i, j] = self.I[j, i] = self.I.get((i, j), 0.0) + p0 * (1 - p0)

    def capital(self, stream, i, j):
        total = 0.0
        for w, l in zip(self.weights8, self.logs(stream, i, j)):
            total += w * exp(l)
        return total

    def won(self, stream, i, j):
        return log(self.capital(stream, i, j)) >= log(8 / self.alpha)

    def may_follow(self, i, j):
        if not self.D:
            return self.won("soft", i, j)
        top = max(0.0, max(self.logs("cur", i, j)), max(self.logs("prev", i, j)))
        return top + log(8) >= log(8 / self.alpha) or max(self.logs("surge", i, j)) > self.level

    def betev(self, i, j):
        if i > j:
            return -self.betev(j, i)
        I = self.I.get((i, j), 0.0)
        if I < 1e-12:
            return 0.0
        S = self.S[i, j]
        if abs(S) < 0.15 * I:
            return S * abs(S) / (2 * I)
        return max(0.0, max(self.logs("soft", i, j))) - max(0.0, max(self.logs("soft", j, i)))

    def left(self):
        return self.prior0 * exp(-self.clicked_pages / 100)

    def prior(self, u, v):
        K = self.K
        if u >= K and v >= K:
            return 0.0
        return self.left() if u < v else -self.left()

    def scale(self, m):
        for i, j in list(self.I):
            if i < j:
                E = abs(self.betev(i, j))
                if E > m:
                    f = m / E
                    for a, b in ((i, j), (j, i)):
                        self.l["soft"][a, b] = [x * f for x in self.logs("soft", a, b)]
                        self.S[a, b] *= f
                        self.I[a, b] *= f

    # ---- certificates
    def rebuild(self):
        L = self.L
        self.over = [[False] * L for _ in range(L)]
        self.fresh = [[False] * L for _ in range(L)]
        self.number = {}
        for c in self.certs:
            self.close(c)
        self.wcache = {}

    def close(self, c):
        i, j, ex = c
        for x in (i, j):
            self.number.setdefault(x, len(self.number))
        ms = [self.over]
        if self.D and ex >= self.start + 2 * self.D:
            ms.append(self.fresh)
        for m in ms:
            ups = [a for a in range(self.L) if a == i or m[a][i]]
            downs = [b for b in range(self.L) if b == j or m[j][b]]
            for a in ups:
                for b in downs:
                    if a != b:
                        m[a][b] = True
        self.wcache = {}

    def settled(self, i, j):
        return (self.fresh if self.D else self.over)[i][j]

    def way(self, j, i):
        parent = {j: None}
        queue = deque([j])
        while queue:
            x = queue.popleft()
            if x == i:
                out = []
                while parent[x] is not None:
                    c, y = parent[x]
                    out.append(c)
                    x = y
                return out
            for c in sorted((c for c in self.certs if c[0] == x), key=lambda c: c[1]):
                if c[1] not in parent:
                    parent[c[1]] = (c, x)
                    queue.append(c[1])
        return None

    def give(self, i, j, until):
        """-> (given, taken)"""
        if any(c[0] == i and c[1] == j and c[2] >= until for c in self.certs) or self.dropped.get((i, j), -1) >= until:
            return False, False
        self.given += 1
        taken = any(c[0] == j and c[1] == i and c[2] < until for c in self.certs)
        self.certs = [c for c in self.certs if not (c[2] < until and {c[0], c[1]} == {i, j})]
        new = [i, j, until]
        self.certs.append(new)
        while new in self.certs:
            way = self.way(j, i)
            if way is None:
                break
            circle = way + [new]
            last = max(c[2] for c in circle)
            drop = [c for c in circle if c[2] < last] or circle
            for c in drop:
                self.certs.remove(c)
                self.dropped[c[0], c[1]] = max(c[2], self.dropped.get((c[0], c[1]), -1))
            taken = True
            self.alarms += 1
        if taken:
            self.rebuild()
        else:
            self.close(new)
        return True, taken

    def look(self, pairs):
        """pairs (i clicked, j) in order; alarms, then certificates. -> (given, taken)"""
        given = taken = alarm = False
        if self.D:
            for i, j in pairs:
                if max(self.logs("surge", i, j)) > self.level:
                    self.l["surge"][i, j] = [0.0] * 8
                    E = self.betev(i, j)
                    if E < 0:
                        for a, b in ((i, j), (j, i)):
                            self.l["soft"][a, b] = [0.0] * 8
                            self.S[a, b] = 0.0
                            self.I[a, b] = 0.0
                    if E < -1.5 or self.over[j][i]:
                        alarm = True
                        self.alarms += 1
                        over = self.over
                        gone = [c for c in self.certs if (c[0] == j or over[j][c[0]]) and (c[1] == i or over[c[1]][i])]
                        if gone and over[j][i]:
                            for c in gone:
                                self.certs.remove(c)
                                for s in ("cur", "prev"):
                                    self.l[s][c[0], c[1]] = [min(0.0, x) for x in self.logs(s, c[0], c[1])]
                            taken = True
                            self.rebuild()
                        self.scale(1)
            if alarm:
                self.fade(4)
                taken = True  # the words say only "given, taken or withdrawn"; the library does it at every alarm
        for i, j in pairs:
            either = self.over[i][j] or self.over[j][i]
            until = None
            if not self.D:
                if not either and self.won("soft", i, j):
                    until = INF
            elif self.won("cur", i, j):
                until = self.start + 2 * self.D
            elif not either and self.won("prev", i, j):
                until = self.start + self.D
            if until is not None:
                g, t = self.give(i, j, until)
                given |= g
                taken |= t
        return given, taken

    def fade(self, m):
        for x in range(self.L):
            if self.M[x] > m:
                self.C[x] *= m / self.M[x]
                self.M[x] = m
        if self.n > 1000:
            f = 1000 / self.n
            self.c = [c * f for c in self.c]
            self.n = 1000.0
        self.pool = [0.0, 0.0]
        for x in range(self.K, self.L):
            self.pool[0] += self.C[x]
            self.pool[1] += self.M[x]

    def epoch(self):
        self.start += self.D
        self.l["prev"] = self.l["cur"]
        self.l["cur"] = {}
        self.scale(8)
        self.certs = [c for c in self.certs if c[2] > self.start]
        self.rebuild()
        self.fade(32)
        self.make_R(True)
        self.plan = None

    # ---- both
    def rank(self):
        self.page_no += 1
        if self.D and self.page_no == self.start + self.D + 1:
            self.epoch()
        if self.plan is None or self.plan["pages"] == 16:
            self.plan = self.small_plan() if self.small else self.slot_plan()
            self.plan["pages"] = 0
        self.plan["pages"] += 1
        if self.small:
            self.small_page()
        else:
            self.slot_page()
        return tuple(self.row[: self.K])

    def feedback(self, clicked):
        flags = [x in clicked for x in self.row]
        if self.small:
            self.small_rates(flags)
        else:
            self.appeal(flags)
        if not any(flags):
            return
        self.clicked_pages += 1
        pairs, bets = (self.small_bets if self.small else self.slot_bets)(flags)
        for i, j, p0 in bets:
            self.bet(i, j, p0)
        if any(self.may_follow(i, j) for i, j, _ in bets):
            given, taken = self.look(pairs)
            if given or taken:
                self.make_R(taken)
                self.plan = None

    def make_R(self, restart):
        if self.small:
            self.small_R(restart)
        else:
            self.slot_R()

    # ---- up to 12 items
    def W(self, page, over=None):
        page = tuple(page)
        if over is None:
            if page in self.wcache:
                return self.wcache[page]
            r = self.W_of(page, self.over)
            self.wcache[page] = r
            return r
        return self.W_of(page, over)

    def W_of(self, page, over):
        L, K = self.L, self.K
        full = (1 << L) - 1

        def below(ranking):
            out = [0] * L
            seen = 0
            for x in ranking:
                seen |= 1 << x
                out[x] = full & ~seen
            return out

        b, bo = below(page), below(range(K))
        need = [sum(1 << y for y in range(L) if over[y][x]) for x in range(L)]
        F = [None] * (1 << L)
        F[0] = 0
        for T in range(1 << L):
            f = F[T]
            if f is None:
                continue
            for x in range(L):
                bit = 1 << x
                if T & bit or need[x] & ~T:
                    continue
                v = f + (T & b[x]).bit_count() - (T & bo[x]).bit_count()
                U = T | bit
                if F[U] is None or F[U] < v:
                    F[U] = v
        return F[full]

    def small_rates(self, flags):
        self.n += 1
        for k in range(self.K):
            x = self.row[k]
            click = 1 if flags[k] else 0
            self.c[k] += click
            self.C[x] += click
            self.M[x] += (self.c[k] + 0.5) * (1 / (self.n + 1))

    def rate(self, i, j):
        C, M = self.C, self.M
        d = C[i] * M[j] - C[j] * M[i]
        w = (M[i] * M[j]) * (C[i] + C[j])
        return 0.0 if w == 0 else d * abs(d) / (2 * w)

    def E(self, i, j):
        if i == j:
            return 0.0
        if i < j:
            return -self.E(j, i)
        if self.settled(i, j):
            return self.emax
        if self.settled(j, i):
            return -self.emax
        e = self.betev(i, j) + 0.5 * self.rate(i, j)
        if j < self.K:
            e -= self.left()
        return max(-self.emax, min(self.emax, e))

    def small_R(self, restart):
        R = list(range(self.K)) if restart else self.R
        while True:
            changed = False
            for x in range(self.L):
                for z in range(self.L):
                    if not self.over[x][z]:
                        continue
                    for move in range(3):
                        if z not in R:
                            continue
                        pz = R.index(z)
                        px = R.index(x) if x in R else None
                        if px is not None and px < pz:
                            continue
                        N = list(R)
                        if move == 0:
                            if px is not None:
                                N.remove(x)
                            N.insert(pz, x)
                            N = N[: self.K]
                        elif move == 1:
                            N[pz] = x
                            if px is not None:
                                N[px] = z
                        else:
                            if px is None:
                                continue
                            N.remove(z)
                            N.insert(N.index(x) + 1, z)
                        if self.W(N) < self.W(R):
                            R = N
                            changed = True
            if not changed:
                break
        self.R = R

    def working(self, cap):
        w = list(self.R)
        refused = False
        for _ in range(self.K):
            changed = False
            for x in range(self.L):
                if x in w:
                    continue
                for k in range(self.K - 1, -1, -1):
                    if self.E(x, w[k]) > 1.5:
                        N = list(w)
                        N[k] = x
                        if self.W(N) <= cap:
                            w = N
                            changed = True
                        else:
                            refused = True
                        break
            for k in range(self.K - 1):
                if self.E(w[k + 1], w[k]) > 1.5:
                    N = list(w)
                    N[k], N[k + 1] = N[k + 1], N[k]
                    if self.W(N) <= cap:
                        w = N
                        changed = True
                    else:
                        refused = True
            if not changed:
                break
        return w, refused

    def above_R(self, x, z):
        R = self.R
        return x in R and (z not in R or R.index(x) < R.index(z))

    def small_plan(self):
        K, L, A, E, rng = self.K, self.L, self.A, self.E, self.rng
        w, refused = self.working(A)
        outside = [x for x in range(L) if x not in w]
        mass = 0.0
        b = w[-1]
        for x in outside:
            if self.W(w[:-1] + [x]) > A:
                mass += exp(-gap(E(b, x)))
        for k in range(K - 1):
            N = list(w)
            N[k], N[k + 1] = N[k + 1], N[k]
            if self.W(N) > A:
                mass += exp(-gap(E(w[k], w[k + 1])))
        mass = min(1.0, mass)
        starved = mass > 0 and rng.uniform() < mass
        hindered = refused or starved
        flat = reserve = False
        if hindered:
            flat = rng.uniform() < 0.5
        if starved and not flat:
            reserve = rng.uniform() < 0.25
        if flat or reserve:
            w, _ = self.working(max(self.W(self.R), A - 7))
            outside = [x for x in range(L) if x not in w]
            b = w[-1]
        fall = {w[0]: 0.0}
        for k in range(K - 1):
            u, v = w[k], w[k + 1]
            f = max(0.5, gap(E(u, v)))
            if hindered and not self.over[u][v] and not self.above_R(u, v):
                f = min(f, 0.8)
            fall[v] = fall[u] + f
        for x in outside:
            if hindered and not self.over[b][x] and self.above_R(x, b):
                fall[x] = fall[b] + 0.8
            else:
                fall[x] = fall[b] + max(0.8, gap(E(b, x)))
        if flat:
            if K > 1:
                fall[b] = fall[w[-2]] + (3 if self.over[w[-2]][b] else 0.3)
            for x in outside:
                fall[x] = fall[b] + 3
            if outside:
                best, o = None, None
                for x in outside:
                    s = 0.0
                    for z in range(L):
                        s += E(x, z)
                    if best is None or s > best:
                        best, o = s, x
                x = outside[rng.pick([exp(-gap(E(o, x))) for x in outside])]
                fall[x] = fall[w[-2]] if K > 1 else fall[b]
        plan = {"items": w + outside, "w": w, "target": None, "flat": flat, "hindered": hindered}
        plan["weight"] = {x: exp(-fall[x]) for x in plan["items"]}
        if self.D and not flat:
            matter = self.renewal(w)
            if matter and rng.uniform() < 0.7:
                plan["target"] = matter[-1]
        return plan

    def closure_of(self, certs):
        L = self.L
        m = [[False] * L for _ in range(L)]
        for i, j, _ in certs:
            ups = [a for a in range(L) if a == i or m[a][i]]
            downs = [b for b in range(L) if b == j or m[j][b]]
            for a in ups:
                for b in downs:
                    m[a][b] = True
        return m

    def renewal(self, w):
        key = (tuple(w), tuple(map(tuple, self.certs)), self.start)
        if key == self.matter_key:
            return self.matter
        held = [c for c in self.certs if c[2] < self.start + 2 * self.D]
        held.sort(key=lambda c: (self.S.get((c[0], c[1]), 0.0) / (self.I.get((c[0], c[1]), 0.0) + 1), c[0], c[1]))
        certs = list(self.certs)
        matter = []
        for c in held:
            rest = [x for x in certs if x is not c]
            if self.W(w, self.closure_of(rest)) <= self.A:
                certs = rest
            else:
                matter.append((c[0], c[1]))
        self.matter_key, self.matter = key, matter
        return matter

    def small_page(self):
        plan, K, rng = self.plan, self.K, self.rng
        items = plan["items"]
        while True:
            ws = [plan["weight"][x] for x in items]
            total = 0.0
            for v in ws:
                total += v
            taken = total
            page = []
            for _ in range(K):
                if total < 0.001 * taken:
                    total = 0.0
                    for v in ws:
                        total += v
                    taken = total
                k = rng.pick(ws, total)
                page.append(items[k])
                total -= ws[k]
                ws[k] = 0.0
            if plan["target"]:
                if rng.uniform() < 0.12:
                    page = self.swap_items(page, *plan["target"])
            if self.W(page) <= self.A:
                break
        self.row = page + [x for x in items if x not in page]
        self.page_plan = plan

    @staticmethod
    def swap_items(page, i, j):
        return [j if x == i else i if x == j else x for x in page]

    def chance(self, weights):
        total = 0.0
        result = 1.0
        for k in range(self.L - 1, -1, -1):
            total += weights[k]
            if k < self.K:
                result *= weights[k] / total
        return result

    def small_bets(self, flags):
        row, K, L, plan = self.row, self.K, self.L, self.page_plan
        weight = plan["weight"]
        ws = [weight[x] for x in row]
        D = [0.0] * (L + 1)
        for k in range(L - 1, -1, -1):
            D[k] = D[k + 1] + ws[k]

        def Q(r):
            i, j = plan["target"]
            swapped = dict(weight)
            swapped[i], swapped[j] = weight[j], weight[i]
            return (1 - 0.12) * self.chance([weight[x] for x in r]) + 0.12 * self.chance([swapped[x] for x in r])

        pairs, bets = [], []
        for a in range(K):
            if not flags[a]:
                continue
            for b in range(L):
                if flags[b]:
                    continue
                i, j = row[a], row[b]
                pairs.append((i, j))
                if not self.D and (self.over[i][j] or self.over[j][i]):
                    continue
                r = list(row)
                r[a], r[b] = r[b], r[a]
                if self.W(r[:K]) > self.A:
                    continue
                if plan["target"]:
                    q, q2 = Q(row), Q(r)
                    p0 = 1.0 if q == 0 else q / (q + q2)
                else:
                    up, lo = min(a, b), max(a, b)
                    change = ws[up] - ws[lo]
                    here = ws[up] if b >= K else 1.0
                    there = ws[lo] if b >= K else 1.0
                    for k in range(up + 1, min(lo, K - 1) + 1):
                        here *= D[k] + change
                        there *= D[k]
                    p0 = here / (here + there) if here > 0 else 1.0
                bets.append((i, j, p0))
        return pairs, bets

    # ---- the slot plan
    def slot_R(self):
        K, L, over = self.K, self.L, self.over
        R = list(range(K))
        m = 0
        while True:
            moved = False
            for p in range(K - 1):
                if over[R[p + 1]][R[p]]:
                    R[p], R[p + 1] = R[p + 1], R[p]
                    m += 1
                    moved = True
            if moved:
                continue
            for p in range(K - 1, -1, -1):
                a = R[p]
                cands = [x for x in range(L) if over[x][a] and (x not in R or R.index(x) > p)]
                if cands:
                    break
            else:
                break
            b = min(cands, key=lambda x: (-sum(over[x]), self.number[x]))
            if b in R:
                q = R.index(b)
                m += 1 + 2 * sum(over[b][z] and over[z][a] for z in R[p + 1 : q])
                R[p], R[q] = b, a
            else:
                m += 1 + 2 * sum(over[b][z] and over[z][a] for z in R[p + 1 :])
                m += sum(over[b][z] and over[z][a] for z in range(L) if z not in R)
                R[p] = b
        self.R, self.m = R, m

    def price(self, page):
        R, over, L = self.R, self.over, self.L
        place = {x: k for k, x in enumerate(R)}
        above = set()
        total = 0
        for k, r in enumerate(page):
            if r in place:
                for z in R[: place[r]]:
                    if z not in above and not over[r][z]:
                        total += 1
            else:
                total += L - (k + 1) - sum(over[r]) + sum(over[r][z] for z in above)
            above.add(r)
        return total

    def slack(self, page):
        return self.A + self.m - self.price(page)

    def slack_all(self, order, occupants, at):
        """least slack over the occupants, slot at place at (from 0)"""
        if not occupants:
            return self.slack(order)
        return min(self.slack(order[:at] + [o] + order[at:]) for o in occupants)

    def appeal(self, flags):
        rates = [(self.c[k] + 0.1) / (self.n + 1) for k in range(self.K)]
        for k in range(self.K):
            x = self.row[k]
            click = 1 if flags[k] else 0
            self.M[x] += rates[k]
            self.C[x] += click
            if x >= self.K:
                self.pool[0] += click
                self.pool[1] += rates[k]
            self.c[k] += click
            if x not in self.tried:
                self.tried.append(x)
        self.n += 1

    def shape(self, x):
        if x < self.K:
            mu = 1.0
        else:
            guess = 0.75 * ((x - self.K + 1) / (self.L - self.K)) ** -0.25
            mu = guess * (self.pool[0] + 2) / (self.pool[1] + 2)
        return self.C[x] + 2 * mu

    def th(self, x):
        return self.shape(x) / (self.M[x] + 2)

    def z(self, x, d):
        s = sqrt(self.shape(x)) / (self.M[x] + 2)
        t = sqrt(self.shape(d)) / (self.M[d] + 2)
        return (self.th(x) - self.th(d)) / sqrt(s * s + t * t)

    def th_draw(self, x):
        return self.rng.gamma(self.shape(x)) / (self.M[x] + 2)

    def hold_race(self):
        R, K, L, over = self.R, self.K, self.L, self.over
        can = [x for q, x in enumerate(R) if L - K + sum(not over[y][x] for y in R[q + 1 :]) <= self.A + self.m]
        weakest = None
        for x in reversed(can):  # a tie: the lowest place
            if weakest is None or self.th(x) < self.th(weakest):
                weakest = x
        d, members = self.race
        if not (d in can and self.z(d, weakest) <= 1):
            d = weakest
        may = [x for x in range(L) if x not in R and not self.settled(d, x)]
        members = [x for x in members if x in may and self.z(x, d) > 1.5]
        while len(members) < 3:
            pool = [x for x in self.tried if x in may and x not in members]
            new = [x for x in may if x not in self.tried and x not in members]
            pool += new[:1]
            if not pool:
                break
            best = None
            for x in pool:
                t = self.th_draw(x)
                if best is None or t > best[0]:
                    best = (t, x)
            members.append(best[1])
        on = False
        for x in members:
            if self.th_draw(x) > self.th(d):
                on = True
        self.race = (d, members)
        return on

    def better(self, v, u):
        P = self.prior(u, v)
        if P == 0:
            return self.th(v) > self.th(u)
        z = self.z(v, u)
        return z * abs(z) > 2 * P

    def sort(self, order, occ, least):
        order = list(order)
        for _ in range(self.K):
            changed = False
            for k in range(len(order) - 1):
                u, v = order[k], order[k + 1]
                if self.better(v, u) and not self.over[u][v]:
                    N = list(order)
                    N[k], N[k + 1] = v, u
                    if self.slack_all(N, occ, self.K - 1) >= least:
                        order = N
                        changed = True
            if not changed:
                break
        return order

    def order_weights(self, order, flat, least=0.0):
        lam = 0.0
        out = [1.0] if order else []
        for u, v in zip(order, order[1:]):
            if self.settled(u, v):
                g = self.maxgap
            elif flat:
                g = max(0.1, gap(self.prior(u, v)))
            elif self.R.index(v) < self.R.index(u):
                g = 0.5
            else:
                g = max(0.5, min(self.maxgap, gap(self.betev(u, v) + self.prior(u, v))))
            lam += max(least, g)
            out.append(exp(-lam))
        return out

    @staticmethod
    def X(w):
        total = 0.0
        for a in range(len(w)):
            for b in range(a + 1, len(w)):
                total += w[b] / (w[a] + w[b])
        return total

    def slot_plan(self):
        K, L, rng = self.K, self.L, self.rng
        poor = self.m < 3
        slot = flat = False
        if L > K and not (poor and rng.uniform() >= 0.7):
            slot = self.hold_race()
        if not slot and poor:
            flat = rng.uniform() < 0.5
        occ, ow = [], []
        order0 = list(self.R)
        if slot:
            d, members = self.race
            order0.remove(d)
            occ = [d] + members
            ow = [1.0]
            for x in members:
                F = self.betev(x, d) + self.prior(x, d)
                ow.append(exp(min(0.5, gap(F)) - min(12, gap(-F))))
        order = self.sort(order0, occ, 0)
        w = self.order_weights(order, flat)
        at = K - 1
        tight = self.X(w) > self.slack_all(order, occ, K - 1) + 8
        if tight:
            s = self.slack_all(order0, occ, K - 1)
            order = self.sort(order0, occ, s - s // 2)
            limit = self.slack_all(order, occ, K - 1)
            g = 0.1
            while True:
                w = self.order_weights(order, flat, g)
                if self.X(w) <= limit or g >= 12:
                    break
                g *= 1.25
        elif slot:
            P = self.prior(d, members[0])
            rises = True
            if P > 0:
                rises = rng.uniform() < 2 / (1 + exp(gap(P)))
            if rises:
                for p in range(ceil(K / 2), K + 1):
                    if self.slack_all(order, occ, p - 1) >= 0:
                        at = p - 1
                        break
        return {
            "order": order,
            "weight": dict(zip(order, w)),
            "occ": occ,
            "ow": ow,
            "at": at,
            "slot": slot,
            "flat": flat,
            "tight": tight,
        }

    def slot_page(self):
        p, rng = self.plan, self.rng
        order = p["order"]
        for _ in range(64):
            ws = [p["weight"][x] for x in order]
            drawn = []
            for _ in order:
                k = rng.pick(ws)
                drawn.append(order[k])
                ws[k] = 0.0
            if self.slack_all(drawn, p["occ"], p["at"]) >= 0:
                self.was_drawn = True
                break
        else:
            drawn = list(order)
            self.was_drawn = False
        self.drawn = drawn
        self.page_plan = p
        row = list(drawn)
        if p["slot"]:
            k = rng.pick(p["ow"])
            row.insert(p["at"], p["occ"][k])
            row += [x for x in p["occ"] if x != p["occ"][k]]
        self.row = row

    def slot_bets(self, flags):
        p, row, K = self.page_plan, self.row, self.K
        slot, at = p["slot"], p["at"]
        drawn = self.drawn
        n = len(drawn)
        ws = [p["weight"][x] for x in drawn]
        D = [0.0] * (n + 1)
        for k in range(n - 1, -1, -1):
            D[k] = D[k + 1] + ws[k]
        oweight = dict(zip(p["occ"], p["ow"]))
        pairs, bets = [], []

        def group(k):
            return slot and (k == at or k >= K)

        for a in range(K):
            if not flags[a]:
                continue
            for b in range(len(row)):
                if flags[b] or group(a) != group(b):
                    continue
                i, j = row[a], row[b]
                if group(a):
                    p0 = 1 / (1 + oweight[j] / oweight[i])
                else:
                    if not self.was_drawn:
                        continue
                    x, y = drawn.index(i), drawn.index(j)
                    N = list(drawn)
                    N[x], N[y] = N[y], N[x]
                    if self.slack_all(N, p["occ"], at) < 0:
                        continue
                    up, lo = min(x, y), max(x, y)
                    change = ws[up] - ws[lo]
                    ratio = 1.0
                    for k in range(lo, up, -1):
                        ratio *= D[k] / (D[k] + change)
                    p0 = 1 / (1 + ratio)
                pairs.append((i, j))
                if not self.D and (self.over[i][j] or self.over[j][i]):
                    continue
                bets.append((i, j, p0))
        return pairs, bets
