"""Mistakes that people make are refused in words that tests/real holds to a real API server's; here they stay so."""

from collections.abc import Callable, Iterator
from pathlib import Path

from real.both_servers import Answer, Embedded, changed
from real.changed_bodies import CHANGES
from real.wrong_bodies import WRONG

TEXT = Path(__file__).with_name("refusals.txt")


def test_what_is_refused_is_refused_in_the_words_written_down(golden: Callable[[Path, str], None]) -> None:
    ours = Embedded()
    answers = {name: ours.try_create(kind, raw) for name, (kind, raw) in WRONG.items()}
    assert all(code >= 400 for code, _ in answers.values())
    answers |= {f"a change: {name}": changed(Embedded(), case) for name, case in CHANGES.items()}
    golden(TEXT, "\n".join(line for name, one in answers.items() for line in _lines(name, one)) + "\n")


def _lines(name: str, answer: Answer) -> Iterator[str]:
    code, body = answer
    causes = body.get("details", {}).get("causes", ()) if code >= 400 else ()
    yield f"{name}: {code} {body.get('reason', '')}".rstrip()
    for one in causes:
        yield f"    {one.get('field', '')}: {one['message'].partition(chr(10))[0][:200]}".rstrip()
    if code >= 400 and not causes:
        yield f"    {body['message']}"
