"""What went wrong with a request, in the form of RFC 9457: a status, a title, a sentence, and the field to look at."""

import logging
import re
from typing import Annotated, Any

from msgspec import Meta, Struct

from saferank.service.json_logs import log
from saferank.store.contract import StoreError, StoreUnavailableError

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):  # noqa: N818 (the RFC's word)
    """A refusal that is told to the caller; raising it leaves everything as it was.

    ``title`` is short and the same for every problem of its kind; ``detail`` is a sentence about this one; ``field``
    says where in the request to look, like ``base_ranking[3]``.

    >>> Problem(422, "Item not shown", "item 'x' was not on this page", "clicks[0]").as_dict()["type"]
    'urn:saferank:problem:item-not-shown'
    """

    def __init__(
        self, status: int, title: str, detail: str, field: str | None = None, *, retry_after: int | None = None
    ) -> None:
        super().__init__(f"{title}: {detail}")
        self.status = status
        self.title = title
        self.detail = detail
        self.field = field
        self.retry_after = retry_after  # seconds, for 429 and 503

    @property
    def type(self) -> str:
        """The name of the kind of problem, for programs."""
        return "urn:saferank:problem:" + re.sub(r"[^a-z0-9]+", "-", self.title.lower())

    def as_dict(self) -> dict[str, Any]:
        """The body of the answer."""
        body = {"type": self.type, "title": self.title, "status": self.status, "detail": self.detail}
        return body if self.field is None else {**body, "field": self.field}


class ProblemBody(Struct, forbid_unknown_fields=True):
    """Why a request was refused (RFC 9457), as it is written by ``Problem.as_dict``."""

    type: Annotated[str, Meta(description="The kind of problem, for programs: a URN that ends in the title.")]
    title: Annotated[str, Meta(description="The kind of problem, for people.")]
    status: Annotated[int, Meta(ge=400, le=599, description="The HTTP status.")]
    detail: Annotated[str, Meta(description="The mistake in this request, in a sentence.")]
    field: Annotated[str, Meta(description="Where in the request to look, like base_ranking[3].")] = ""


def unavailable(problem: StoreUnavailableError | StoreError) -> Problem:
    """What a caller is told while the store does not answer: not where it is and who uses it."""
    log(logging.WARNING, "a call was refused: the store does not answer", detail=str(problem))
    return Problem(503, "Not available", "the store does not answer at present; try again", retry_after=1)
