"""Where a driver's sockets lie, and whose sockets it removes."""

import contextlib
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from jackfield.driver import sockets
from jackfield.driver.sockets import Misplaced, Places
from unit.driver.seat import DRIVER, seat

UID = "0f7f2d3e-8d0a-4c52-9a53-1f8f6e3f8a11"
OTHER = "5a3d94a2-0a57-4f0e-b9c5-6b7a0d1e2c33"
THIRD = "c7b2f6d0-7c8e-4a3b-8f21-94b1d5e6f708"
LONGEST = "a" * 61 + ".b"
KUBELET = Places()


@pytest.mark.parametrize(
    ("driver", "pod_uid", "registration", "service"),
    [
        (DRIVER, "", f"{DRIVER}-reg.sock", "dra.sock"),
        (DRIVER, UID, f"{DRIVER}-{UID}-reg.sock", f"dra-{UID}.sock"),
        ("d" * 30, UID, f"{'d' * 30}-9e98393b-reg.sock", f"dra-{UID}.sock"),
        (LONGEST, "", f"{LONGEST}-reg.sock", "dra.sock"),
        (LONGEST, UID, "67ddc8ec-9e98393b-reg.sock", "9e98393b.sock"),
    ],
)
def test_the_names_of_sockets_are_as_plain_as_fits(
    driver: str, pod_uid: str, registration: str, service: str
) -> None:
    places = replace(KUBELET, pod_uid=pod_uid)
    assert places.registration(driver) == places.registry / registration
    assert places.service(driver) == places.plugins / driver / service


DRIVERS = st.from_regex(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)


@given(drivers=st.tuples(DRIVERS, DRIVERS), uids=st.tuples(*2 * [st.uuids().map(str)]))
def test_no_two_pods_of_any_two_drivers_have_one_socket(
    drivers: tuple[str, str], uids: tuple[str, str]
) -> None:
    pods = {(driver, uid) for driver in drivers for uid in (*uids, "")}
    paths = {
        path
        for driver, uid in pods
        for places in [replace(KUBELET, pod_uid=uid)]
        for path in (places.registration(driver), places.service(driver))
    }
    assert len(paths) == 2 * len(pods)
    assert max(len(os.fsencode(path)) for path in paths) <= 107


@pytest.mark.parametrize(
    "name", ["", "..", "../x", "a/b", "/a", "a\n", "A", "a_b", "-a", "a-", "a..b", ".a", "a" * 64, "ä"]
)
def test_what_is_no_driver_becomes_no_path(name: str) -> None:
    for path in (KUBELET.folder, KUBELET.registration, KUBELET.service):
        with pytest.raises(Misplaced, match="no name for a driver"):
            path(name)


@pytest.mark.parametrize("uid", ["../x", "a/b", "-a", "a\n", "a" * 64])
def test_what_is_no_uid_becomes_no_path(uid: str) -> None:
    with seat() as places, pytest.raises(Misplaced, match="is no uid of a pod"):
        sockets.make_room(DRIVER, replace(places, pod_uid=uid))


def test_a_folder_too_long_for_a_socket_is_refused_in_words() -> None:
    deep = Path("/", *["deep"] * 20)
    with pytest.raises(Misplaced, match=r"too long for a socket.*107 bytes.*shorter folder"):
        Places(plugins=deep).service(DRIVER)
    with pytest.raises(Misplaced, match="too long for a socket"):
        Places(registry=deep).registration(DRIVER)


def test_a_relative_folder_is_refused() -> None:
    with pytest.raises(Misplaced, match="no absolute path"):
        sockets.make_room(DRIVER, Places(Path("plugins"), Path("registry")))


# --- folders


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_folders_are_made_for_their_owner_alone() -> None:
    with seat() as places:
        sockets.make_room(DRIVER, places)
        assert mode(places.folder(DRIVER)) == 0o700
        assert mode(places.registry) & 0o027 == 0
        assert mode(places.plugins) & 0o027 == 0


def test_a_folder_that_a_volume_made_for_everybody_is_closed() -> None:
    with seat() as places:
        places.folder(DRIVER).mkdir(parents=True)
        places.folder(DRIVER).chmod(0o777)
        sockets.make_room(DRIVER, places)
        assert mode(places.folder(DRIVER)) == 0o700


def test_the_kubelets_own_folders_stay_as_they_are() -> None:
    with seat() as places:
        places.registry.mkdir()
        places.registry.chmod(0o755)
        sockets.make_room(DRIVER, places)
        assert mode(places.registry) == 0o755


def test_a_link_in_the_place_of_our_folder_is_not_followed() -> None:
    with seat() as places:
        elsewhere = places.plugins.parent / "elsewhere"
        elsewhere.mkdir()
        places.plugins.mkdir()
        places.folder(DRIVER).symlink_to(elsewhere)
        with pytest.raises(Misplaced, match="should be our own folder, but is a link"):
            sockets.make_room(DRIVER, places)


def test_a_folder_of_somebody_else_is_not_used() -> None:
    with seat() as places:
        if os.geteuid() == 0:
            places.folder(DRIVER).mkdir(parents=True)
            os.chown(places.folder(DRIVER), 12345, 12345)
            driver, theirs = DRIVER, places
        else:
            driver, theirs = "usr", replace(places, plugins=Path("/"))
        with pytest.raises(Misplaced, match="belongs to user"):
            sockets.make_room(driver, theirs)


def test_a_folder_that_cannot_be_made_is_told_with_the_reason() -> None:
    with seat() as places:
        places.plugins.write_text("")
        with pytest.raises(Misplaced, match=r"cannot make .*: .*; is the node's folder mounted"):
            sockets.make_room(DRIVER, places)


# --- sockets


@contextlib.contextmanager
def listening(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.fspath(path))
        one.listen()
        yield


def dead(path: Path) -> Path:
    with listening(path):
        return path


def test_what_a_killed_process_left_is_removed() -> None:
    with seat() as places:
        left = [
            dead(place(driver))
            for driver, uid in [(DRIVER, ""), (DRIVER, UID), (DRIVER, OTHER)]
            for places_of_pod in [replace(places, pod_uid=uid)]
            for place in (places_of_pod.registration, places_of_pod.service)
        ]
        left += [dead(sockets.unfinished(path, DRIVER)) for path in left[:2]]
        assert sockets.make_room(DRIVER, places) == tuple(sorted(left))
        assert not [path for path in left if path.exists()]


def test_a_killed_pod_whose_sockets_had_short_names_leaves_nothing_behind() -> None:
    with seat() as places:
        folders = [
            folder / ("f" * (107 - 40 - len(os.fsencode(folder))))
            for folder in (places.plugins, places.registry)
        ]
        deep = replace(places, plugins=folders[0], registry=folders[1], pod_uid=UID)
        driver = "d" * 24
        left = {dead(deep.registration(driver)), dead(deep.service(driver))}
        assert {path.name for path in left} == {"ec0e7aa5-9e98393b-reg.sock", "9e98393b.sock"}
        assert set(sockets.make_room(driver, replace(deep, pod_uid=OTHER))) == left


def test_the_sockets_of_the_living_and_of_others_stay() -> None:
    with seat() as places, contextlib.ExitStack() as alive:
        before = replace(places, pod_uid=UID)
        for path in (before.registration(DRIVER), before.service(DRIVER)):
            alive.enter_context(listening(path))
        others = [
            dead(places.registration(f"{DRIVER}x")),
            dead(places.registration("x")),
            dead(places.folder(DRIVER) / "mine.sock"),
        ]
        file = places.registry / f"{DRIVER}-{THIRD}-reg.sock"
        file.write_text("no socket")
        assert sockets.make_room(DRIVER, replace(places, pod_uid=OTHER)) == ()
        for path in (before.registration(DRIVER), before.service(DRIVER), *others, file):
            assert path.exists()


@pytest.mark.parametrize("which", ["registration", "service"])
def test_a_socket_that_another_process_serves_is_not_taken_from_it(which: str) -> None:
    with seat() as places:
        path = getattr(places, which)(DRIVER)
        with (
            listening(path),
            pytest.raises(Misplaced, match=r"another process serves this driver at .*--pod-uid"),
        ):
            sockets.make_room(DRIVER, places)
        assert path.exists()


@pytest.mark.parametrize("what", ["file", "link", "folder"])
def test_what_is_no_socket_is_not_removed_from_its_place(what: str) -> None:
    with seat() as places:
        path = places.registration(DRIVER)
        path.parent.mkdir()
        match what:
            case "file":
                path.write_text("")
            case "link":
                path.symlink_to("nowhere")
            case _:
                path.mkdir()
        with pytest.raises(Misplaced, match="something else lies there"):
            sockets.make_room(DRIVER, places)
        assert path.is_symlink() or path.exists()


def test_a_full_socket_is_one_that_somebody_listens_on() -> None:
    with seat() as places, contextlib.ExitStack() as kept:
        path = places.plugins
        server = kept.enter_context(socket.socket(socket.AF_UNIX))
        server.bind(os.fspath(path))
        server.listen(0)
        for _ in range(5):
            caller = kept.enter_context(
                socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            )
            caller.connect_ex(os.fspath(path))
        assert sockets.listened_on(path)
