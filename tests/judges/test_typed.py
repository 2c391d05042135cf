"""What docs/fabric-manager.md says can be typed attaches a device, and detaches it."""

import asyncio
import json
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from jackfield.fabric_manager.folder import Folder
from unit.fabric_manager.redfish_bench import Client, started

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "fabric-manager.md").read_text()
SECTION = PAGE.partition("\n## Redfish\n")[2].partition("\n## ")[0]
LAB = {
    "fabric": "rack",
    "machines": [{"name": "worker", "count": 2}],
    "devices": [{"name": "gpu", "count": 3, "model": "A100"}],
    "times": {"attach": {"kind": "fixed", "seconds": 1.5}},
}


def printed(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects that stand in a text, one after the other."""
    decoder, found = json.JSONDecoder(), []
    while text := text.strip():
        one, end = decoder.raw_decode(text)
        found.append(one)
        text = text[end:]
    return found


def test_what_can_be_typed_attaches_a_device_and_detaches_it(tmp_path: Path) -> None:
    assert shutil.which("curl"), "what is typed is curl: install it"
    found = re.search(r"### By hand\n\n```sh\n(.*?)```", SECTION, re.DOTALL)
    assert found is not None
    folder = Folder(tmp_path / "jackfield-fabric")
    folder.make()
    folder.inventory.write_text(yaml.safe_dump(LAB))

    async def main() -> list[dict[str, Any]]:
        process = await started(folder)
        shell = await asyncio.create_subprocess_exec(
            *("sh", "-eu", "-c", found[1]), cwd=tmp_path, stdout=asyncio.subprocess.PIPE
        )
        text, _ = await shell.communicate()
        assert shell.returncode == 0
        proof = aiohttp.encode_basic_auth("jackfield", folder.token.read_text().strip())
        async with aiohttp.ClientSession(folder.url.read_text().strip()) as session:
            client = Client(session, {"Authorization": proof})
            while await client.blocks("worker-1") != ["compute-worker-1"]:  # noqa: ASYNC110 - real time
                await asyncio.sleep(0.05)  # noqa: TID251 - likewise
        process.send_signal(signal.SIGTERM)
        await process.wait()
        return printed(text.decode())

    listed, reserved, machine, *_ = asyncio.run(main())
    states = [one["CompositionStatus"]["CompositionState"] for one in listed["Members"]]
    assert states == ["Composed", "Composed", "Unused", "Unused", "Unused"]
    assert reserved["CompositionStatus"]["Reserved"] is True
    blocks = [one["@odata.id"].rpartition("/")[2] for one in machine["Links"]["ResourceBlocks"]]
    assert blocks == ["compute-worker-1", "gpu-1"]
