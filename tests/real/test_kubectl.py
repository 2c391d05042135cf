"""An unmodified kubectl is told the same by a real API server and by the embedded one, step by step."""

import difflib
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from jackfield.codec.definitions import definitions
from jackfield.testing.control_plane import ControlPlane, Settings, binaries, fake_node
from jackfield.testing.control_plane.api import Api
from real.embedded import embedded
from real.kubectl.runs import Kubectl
from real.kubectl.script import CHAPTERS

FILES = Path(__file__).parent / "kubectl" / "files"
NODES = ("node-1", "node-2")
SETTINGS = Settings(
    feature_gates=("DRADeviceTaintRules=true",),
    apiserver_flags=("--runtime-config=resource.k8s.io/v1beta2=true",),
    # It annotates nodes for kubelets, of which there are none.
    controller_manager_flags=("--controllers=-ttl-controller",),
)

Story = dict[str, list[tuple[str, tuple[str, ...]]]]
"""By chapter, what was typed and what came of it."""


def folder(within: Path, name: str) -> Path:
    shutil.copytree(FILES, within / name)
    return within / name


def furnish(api: Api) -> None:
    for name in NODES:
        fake_node(api, name)


def story(kubectl: Kubectl) -> Story:
    return {
        chapter: [
            (done.words, run.lines(at_a_glance=done.at_a_glance))
            for step in steps
            for done, run in kubectl.runs(step)
        ]
        for chapter, steps in CHAPTERS.items()
    }


def program(plane: ControlPlane, name: str) -> Path:
    """Return the kubectl that fits, or build another one."""
    if name == binaries.KUBECTL:
        return plane.kubectl_path
    built = subprocess.run([binaries.build_script(), name], stdout=subprocess.PIPE, text=True, check=True)
    return Path(built.stdout.strip()) / name


@pytest.fixture(
    scope="module",
    params=[
        binaries.KUBECTL,
        pytest.param("kubectl-1.35", marks=pytest.mark.slow),
        pytest.param("kubectl-1.37", marks=pytest.mark.slow),
    ],
)
def stories(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Story, Story]]:
    """What the real cluster and the embedded one say, each asked while the other is."""
    within = tmp_path_factory.mktemp("kubectl")
    with ControlPlane(SETTINGS) as plane, embedded() as ours, ThreadPoolExecutor(2) as pool:
        plane.kubectl("apply", "--filename=-", text=yaml.safe_dump_all(definitions()))
        for api in (plane.api(), ours.api()):
            with api:
                furnish(api)
        kubectl = program(plane, request.param)
        sides = (
            Kubectl(kubectl, plane.kubeconfig, folder(within, "real")),
            Kubectl(kubectl, ours.kubeconfig(within), folder(within, "embedded")),
        )
        real, our = pool.map(story, sides)
        yield real, our


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_kubectl_is_told_the_same(stories: tuple[Story, Story], chapter: str) -> None:
    real, ours = (one[chapter] for one in stories)
    assert [words for words, _ in real] == [words for words, _ in ours]
    differences = [
        "\n".join((f"$ kubectl {words}", *difflib.unified_diff(told, other, "real", "embedded", lineterm="")))
        for (words, told), (_, other) in zip(real, ours, strict=True)
        if told != other
    ]
    assert not differences, "\n\n".join(("", *differences))
