"""The shape of the repository: every rule of `tidy/` is seen to fail, then applied to the tree."""

from functools import cache
from pathlib import Path

import pytest

from tidy import code, files, purity
from tidy.rule import Rule, Source, sources

ROOT = Path(__file__).resolve().parent.parent

RULES = [one for module in (files, code, purity) for one in vars(module).values() if isinstance(one, Rule)]
EXAMPLES = [
    pytest.param(one, bad, id=f"{one.name}-{number}") for one in RULES for number, bad in enumerate(one.bad)
]


@cache
def _tree() -> tuple[Source, ...]:
    return tuple(sources(ROOT))


@pytest.mark.parametrize(("one", "bad"), EXAMPLES)
def test_every_rule_refuses_what_is_bad(one: Rule, bad: Source) -> None:
    assert list(one.violations(bad))


@pytest.mark.parametrize("one", RULES, ids=lambda one: one.name)
def test_every_rule_accepts_what_is_good(one: Rule) -> None:
    assert list(one.violations(one.good)) == []


@pytest.mark.parametrize("one", RULES, ids=lambda one: one.name)
def test_the_repository_obeys_every_rule(one: Rule) -> None:
    subject = [source for source in _tree() if one.where(source)]
    assert subject, "the rule applies to nothing"
    found = [f"{source.path}:{words}" for source in subject for words in one.violations(source)]
    assert not found, "\n".join(["", *found])
