"""One victim for all tests of a module, that must be well before and after each."""

from collections.abc import Iterator

import pytest

from hostile import attack


@pytest.fixture(scope="module")
def survivor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[attack.Victim]:
    with attack.victim(tmp_path_factory.mktemp("victim")) as one:
        yield one


@pytest.fixture
def victim(survivor: attack.Victim) -> Iterator[attack.Victim]:
    assert survivor.is_well()
    yield survivor
    assert survivor.is_well()
    assert survivor.complaints() == ""
