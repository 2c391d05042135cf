"""Runs kubectl, and makes comparable what it prints.

Knows processes, and what in an answer is chance or time. Must not know which cluster is spoken to.
"""

import contextlib
import os
import re
import shlex
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import yaml

from jackfield.codec import RawValue
from real.kubectl.step import Step

SECONDS_MAX = 45.0
FIRST_LINE_SECONDS = 1.5
MASKS = tuple(
    (re.compile(pattern, re.MULTILINE), shown)
    for pattern, shown in (
        (r"https?://127\.0\.0\.1:\d+|127\.0\.0\.1:\d+", "<server>"),
        (r"/tmp/(LIVE|MERGED)-\d+", r"<\1>"),  # noqa: S108 - what kubectl diff calls its files
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uid>"),
        (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
        (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+]\d{4}", "<time>"),
        (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+]\d{4}", "<time>"),
        (r"(resourceVersion\\*\"?: ?\\*\"?)\d+", r"\1<version>"),
        # The object in this message is spelt as Go's maps and structs happen to be ordered.
        (r'(patch: Invalid value: ")\{.*\}(": )', r"\1<object>\2"),
        # So is this one, and it has no tags of JSON.
        (r"(Invalid value: ).*(: field is immutable)", r"\1<object>\2"),
        # The embedded scheduler preempts nobody, and says nothing of it.
        (
            r"(?:(?<=\.) no new claims to deallocate)?, preemption: 0/\d+ nodes are available: [^\n\"]*?scheduling\.",
            "",
        ),
        (r"(Resource Version: +)\d+", r"\1<version>"),
        (r"(\"continue\": ?\")[^\"]+", r"\1<token>"),
        (r"\b(gen-|kube-api-access-|tester-gpu-|late-gpu-)[bcdfghjklmnpqrstvwxz2456789]{5}\b", r"\1<name>"),
        (r"(?<=\.)[0-9a-f]{16}\b", "<name>"),
        (r"(?<![\w.])(?:\d+[dhms]){1,2}(?![\w.])", "<age>"),
        (r"^[IW]\d{4} .*reflector\.go:\d+\] .*\n", ""),  # whether a watch was cut off or timed out is a race
        (r"(?<=\S) {2,}", "  "),  # columns are as wide as what stands in them
    )
)


class Run(msgspec.Struct, frozen=True):
    """How a command ended."""

    status: int
    out: str
    err: str

    def lines(self, *, at_a_glance: bool = False) -> tuple[str, ...]:
        """All that can be compared, by line."""
        printed = (*masked(self.out), *(f"! {one}" for one in masked(self.err)))
        return (f"exit status {self.status}", *(printed[:1] if at_a_glance else printed))


def masked(text: str) -> tuple[str, ...]:
    """Return the lines of a text without what differs each time, and its JSON without an order of members."""
    with contextlib.suppress(msgspec.DecodeError, yaml.YAMLError):
        raw = yaml.safe_load(text) if "  managedFields:\n" in text else msgspec.json.decode(text)
        text = msgspec.json.format(msgspec.json.encode(_settled(raw), order="sorted")).decode()
    for pattern, shown in MASKS:
        text = pattern.sub(shown, text)
    return tuple(text.splitlines())


def _settled(raw: RawValue) -> RawValue:
    """Return an object whose lists are sorted where a server's order is chance: the kinds of a group, and managers.

    Managers are sorted by the second they wrote in, and two of the same second by name.
    """
    if isinstance(raw, list):
        return [_settled(one) for one in raw]
    if not isinstance(raw, dict):
        return raw
    settled = {name: _settled(value) for name, value in raw.items()}
    if settled.get("kind") == "APIResourceList":
        settled["resources"].sort(key=lambda one: one["name"])
    if "managedFields" in settled:
        settled["managedFields"].sort(
            key=lambda one: (one["manager"], one["operation"], one.get("subresource", ""))
        )
    return settled


class Kubectl:
    """One kubectl, with one way in, in a folder of its own."""

    def __init__(self, program: Path, kubeconfig: Path, folder: Path) -> None:
        self._command = (str(program), f"--kubeconfig={kubeconfig}")
        self._folder = folder

    def runs(self, step: Step) -> Iterator[tuple[Step, Run]]:
        """Do a step, and what is to be done meanwhile; yield how each of them ended."""
        known = {name: self._run(self._started(Step(words)), "").out for name, words in step.knowing.items()}
        process = self._started(step)
        text = step.text
        for name, value in known.items():
            text = text.replace(f"{{{name}}}", value)
        if not step.meanwhile:
            yield step, self._run(process, text)
            return
        with contextlib.ExitStack() as stack:
            reading = _Reading(process)
            stack.callback(reading.end)
            reading.first.wait(FIRST_LINE_SECONDS)
            for one in step.meanwhile:
                yield from self.runs(one)
            yield step, reading.run()

    def _started(self, step: Step) -> subprocess.Popen[str]:
        environment = {
            "HOME": str(self._folder),
            "PATH": os.environ["PATH"],
            "KUBE_EDITOR": step.editor,
            "TMPDIR": "/tmp",  # noqa: S108 - it is named in what diff prints
        }
        return subprocess.Popen(
            [*self._command, *shlex.split(step.words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self._folder,
            env=environment,
        )

    def _run(self, process: subprocess.Popen[str], text: str) -> Run:
        with process:
            try:
                out, err = process.communicate(text, timeout=SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return Run(process.returncode, out, err)


class _Reading:
    """What a command prints while others run."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        process.stdin.close()
        self.first = threading.Event()
        self._process = process
        self._printed: tuple[list[str], list[str]] = ([], [])
        self._threads = [
            threading.Thread(target=self._read, args=(number,), daemon=True) for number in range(2)
        ]
        for one in self._threads:
            one.start()

    def _read(self, number: int) -> None:
        stream = (self._process.stdout, self._process.stderr)[number]
        assert stream is not None
        for line in stream:
            self._printed[number].append(line)
            self.first.set()

    def run(self) -> Run:
        """Wait for its end."""
        status = self._process.wait(SECONDS_MAX)
        self.end()
        return Run(status, *("".join(lines) for lines in self._printed))

    def end(self) -> None:
        """Leave nothing behind."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for one in self._threads:
            one.join()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()
