"""A literal slow reader of yandex-personalized logs, of the standard library only; never improved."""

from collections import Counter
from typing import NamedTuple

LONGEST_PAGE = 100
LONGEST_SESSION = 4096


class BadLineError(Exception):
    """What is wrong with a line, the first thing from the left."""


class Page:
    def __init__(self, query: int, items: list[int], test: bool) -> None:
        self.query, self.items, self.test = query, items, test
        self.clicked: set[int] = set()

    def clicks(self) -> tuple[int, ...]:
        return tuple(int(item in self.clicked) for item in self.items)


class Read(NamedTuple):
    pages: list[Page]
    lines: int
    sessions: int
    stray_clicks: int
    test_clicks: int
    bad: dict[str, list[int]]  # kind -> numbers of lines


def number(field: str) -> int:
    if not field or any(letter not in "0123456789" for letter in field) or len(field) > 20 or int(field) >= 2**64:
        raise BadLineError("not a number")
    if len(field) == 20 and field[0] == "0":  # ids have no leading zeros; 20 digits of them are not read
        raise BadLineError("not a number")
    return int(field)


class Fields:
    def __init__(self, line: str) -> None:
        self.left = line.split("\t")

    def take(self) -> str:
        if not self.left:
            raise BadLineError("wrong number of fields")
        return self.left.pop(0)

    def number(self) -> int:
        return number(self.take())

    def end(self) -> None:
        if self.left:
            raise BadLineError("wrong number of fields")


class Reference:
    def __init__(self) -> None:
        self.all: list[Page] = []
        self.session: int | None = None
        self.of_session: list[tuple[int, Page]] = []
        self.sessions = self.stray = self.test_clicks = 0

    def enter(self, session: int) -> None:
        if session != self.session:
            self.session, self.of_session = session, []
            self.sessions += 1

    def line(self, line: str) -> None:
        fields = Fields(line)
        session = fields.number()
        kind = fields.take()
        if kind == "M":
            fields.number()
            fields.number()
            fields.end()
            self.enter(session)
            return
        number(kind)  # it is the time
        kind = fields.take()
        if kind == "C":
            self.click(session, fields)
        elif kind in ("Q", "T"):
            self.page(session, kind == "T", fields)
        else:
            raise BadLineError("unknown record type")

    def click(self, session: int, fields: Fields) -> None:
        serp, item = fields.number(), fields.number()
        fields.end()
        self.enter(session)
        pages = [page for other, page in self.of_session if other == serp]
        if not pages:
            raise BadLineError("click without its page")
        page = pages[-1]
        if page.test:
            self.test_clicks += 1
        elif item in page.items:
            page.clicked.add(item)
        else:
            self.stray += 1

    def page(self, session: int, test: bool, fields: Fields) -> None:
        serp, query = fields.number(), fields.number()
        fields.take()  # terms
        items: list[int] = []
        field = fields.take()
        while True:
            url, comma, domain = field.partition(",")
            item = number(url)
            if not comma:
                raise BadLineError("not a number")
            number(domain)
            if len(items) == LONGEST_PAGE:
                raise BadLineError(f"page of more than {LONGEST_PAGE} items")
            if item in items:
                raise BadLineError("item twice on its page")
            items.append(item)
            if not fields.left:
                break
            field = fields.take()
        self.enter(session)
        if len(self.of_session) == LONGEST_SESSION:
            raise BadLineError(f"session of more than {LONGEST_SESSION} pages")
        page = Page(query, items, test)
        self.of_session.append((serp, page))
        self.all.append(page)


def read(text: bytes) -> Read:
    reference, bad = Reference(), dict[str, list[int]]()
    lines = text.decode("latin-1").split("\n")
    if lines[-1] == "":
        lines.pop()
    for count, line in enumerate(lines, start=1):
        stripped = line.removesuffix("\r")
        try:
            if stripped:
                reference.line(stripped)
        except BadLineError as problem:
            bad.setdefault(str(problem), []).append(count)
    return Read(reference.all, len(lines), reference.sessions, reference.stray, reference.test_clicks, bad)


def frequent(pages: list[Page], n: int) -> list[int]:
    """The n most frequent queries, of equals the first seen."""
    return [query for query, _ in Counter(page.query for page in pages if not page.test).most_common(n)]


def distinct(pages: list[Page], queries: list[int]) -> dict[tuple[int, tuple[int, ...], tuple[int, ...]], int]:
    """The pages of some queries, (query, items, clicks) -> how often, in the order in which they were first seen."""
    shown = [page for page in pages if not page.test and page.query in queries]
    return dict(Counter((page.query, tuple(page.items), page.clicks()) for page in shown))


def ranking(pages: list[Page], query: int) -> tuple[int, ...] | None:
    """The most frequent ranking of exactly ten items, of equals the first seen."""
    shown = [tuple(page.items) for page in pages if not page.test and page.query == query and len(page.items) == 10]
    best = Counter(shown).most_common(1)
    return best[0][0] if best else None
