"""`jackfield node` says what is wrong with what it was given, before it touches anything."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from jackfield.cli.main import main
from jackfield.cli.node import Given, given, read_sharing
from jackfield.cli.run import Unusable
from jackfield.core.share import Partitions, Shares, Sharing
from jackfield.driver import checkpoint

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


def run(folder: Path, *words: str) -> Result:
    (folder / "kubeconfig").write_text(KUBECONFIG)
    places = [
        f"{option}={folder / name}"
        for option, name in {
            "--plugins-dir": "plugins",
            "--registry-dir": "registry",
            "--cdi-dir": "cdi",
            "--sysfs-root": "sys",
            "--proc-root": "proc",
        }.items()
    ]
    given = ["node", "--node-name=n1", f"--kubeconfig={folder / 'kubeconfig'}", *places, *words]
    return CliRunner().invoke(main, given)


def test_a_node_must_be_named() -> None:
    done = CliRunner().invoke(main, ["node"], env={"NODE_NAME": ""})
    assert done.exit_code == 2
    assert "--node-name" in done.output


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("--policy", "identities: []", "identities: must name at least one"),
        ("--policy", "localDevices: [{name: gpu}]", "localDevices[0]: must name a vendor or a pciClass"),
        ("--sharing", "partitions: Some", "partitions: Invalid enum value 'Some'"),
        ("--sharing", "share: 1", "unknown field `share`"),
        ("--sharing", "a: b: c", "not YAML"),
        ("--sharing", None, "cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_fault(
    tmp_path: Path, option: str, text: str | None, said: str
) -> None:
    if text is not None:
        (tmp_path / "file.yaml").write_text(text)
    done = run(tmp_path, f"{option}={tmp_path / 'file.yaml'}")
    assert done.exit_code == 2
    assert f"jackfield node: {tmp_path / 'file.yaml'}:" in done.output
    assert said in done.output


def test_a_checkpoint_of_a_newer_plugin_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "plugins" / "fabric.jackfield.dev"
    folder.mkdir(parents=True, mode=0o700)
    text = checkpoint.file((), 7, version=99)
    (folder / "checkpoint.jsonl").write_bytes(text)
    done = run(tmp_path)
    assert (done.exit_code, (folder / "checkpoint.jsonl").read_bytes()) == (2, text)
    assert "by a newer version of this driver" in done.output


def test_sharing_is_read_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "sharing.yaml"
    path.write_text("partitions: OnDemand\nshares: {count: 4}\n")
    assert read_sharing(path) == Sharing(Partitions.ON_DEMAND, Shares(4))
    with pytest.raises(Unusable):
        read_sharing(tmp_path / "none.yaml")


def test_options_become_settings(tmp_path: Path) -> None:
    folders = ("plugins", "registry", "cdi", "sysfs", "proc", "dev", "pod_logs")
    options = dict.fromkeys(Given.__struct_fields__) | {name: tmp_path / name for name in folders}
    texts: dict[str, object] = {"node_name": "n1", "pod_uid": "u", "layout": "text", "net_devices": True}
    settings = given(options | texts).settings
    assert (settings.node, settings.places.pod_uid, settings.manners.interfaces) == ("n1", "u", True)
    assert (settings.roots.sysfs, settings.places.cdi) == (tmp_path / "sysfs", tmp_path / "cdi")
    assert settings.nvidia is not None
    assert settings.nvidia.sharing is None
