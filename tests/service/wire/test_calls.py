"""What the fields of the calls promise, in words that clients read in the OpenAPI document."""

import msgspec
import pytest

from saferank.service.wire.calls import FeedbackCall, RankCall, Safety


@pytest.mark.parametrize(
    ("model", "field", "promised"),
    [
        (RankCall, "request_id", "until something is learnt"),
        (RankCall, "request_id", "new impression_id"),
        (RankCall, "session_id", "until something is learnt"),
        (RankCall, "session_id", "new impression_id"),
        (Safety, "explored", "any place"),
        (FeedbackCall, "impression_id", "404"),
    ],
)
def test_descriptions_promise_what_is_kept(model: type[msgspec.Struct], field: str, promised: str) -> None:
    description = msgspec.json.schema_components([model])[1][model.__name__]["properties"][field]["description"]
    assert promised in description
    assert "while the page is open" not in description and "while it is open" not in description
