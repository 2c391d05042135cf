"""Spoilt requests are answered in the face's own words, and leave the books sound. `make fuzz-fabric` has more."""

from pathlib import Path

from hostile.fabrics import faces, hurried

REQUESTS = 400
SEED = 11


def test_every_spoilt_request_is_answered_and_leaves_the_books_sound(tmp_path: Path) -> None:
    outcomes, wrong = hurried.run(faces.run(tmp_path, SEED, range(REQUESTS)))
    assert wrong == []
    assert outcomes.total() == REQUESTS
    assert {"200", "400", "404", "405"} <= outcomes.keys()
