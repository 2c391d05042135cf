"""The official client's asynchronous twin does with the embedded API what it does with a real one."""

import asyncio

import pytest
from kubernetes_asyncio import client, config, watch


def test_it_lists_watches_and_patches(kubeconfig: str) -> None:
    async def story() -> None:
        async with await config.new_client_from_config(kubeconfig) as api:
            core, told = client.CoreV1Api(api), []
            await core.create_namespaced_config_map("default", {"metadata": {"name": "a"}})
            async with watch.Watch() as watching:
                events = watching.stream(core.list_namespaced_config_map, "default", timeout_seconds=20)
                async for event in events:
                    told.append((event["type"], event["object"].metadata.name))
                    if event["type"] == "ADDED":
                        await core.patch_namespaced_config_map("a", "default", {"data": {"k": "v"}})
                    elif event["type"] == "MODIFIED":
                        await core.delete_namespaced_config_map("a", "default")
                    else:
                        break
            assert told == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
            with pytest.raises(client.ApiException, match="not found"):
                await core.read_namespaced_config_map("a", "default")

    asyncio.run(story())
