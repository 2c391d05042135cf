"""What is remembered has a limit in bytes too: large objects written again and again must not fill the memory."""

import pytest

from jackfield.cluster.errors import ApiError
from jackfield.model.config import ConfigMap
from unit.cluster.face.faces import MAPS, Face, config_map, told


def test_large_objects_are_forgotten_sooner() -> None:
    face = Face(events_max=20_000)
    began = int(told(face.post(MAPS, config_map("m")))["metadata"]["resourceVersion"])
    for number in range(80):
        assert face.put(f"{MAPS}/m", config_map("m", a=f"{number}" + "x" * 1_000_000)).code == 200
    assert len(face.store.since(ConfigMap, face.store.version - 5)) == 5
    with pytest.raises(ApiError, match="too old resource version"):
        face.store.since(ConfigMap, began)
