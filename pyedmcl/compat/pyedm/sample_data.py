"""pyEDM's example data, where pyEDM is installed: they are not ours to ship."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Any

from ...errors import missing_extra
from .frames import pandas

_FILES = {
    "TentMap": "TentMap.csv",
    "TentMapNoise": "TentMapNoise.csv",
    "circle": "circle.csv",
    "circleNoise": "circle_noise.csv",
    "circle_noTime": "circle_noTime.csv",
    "columnNameSpace": "columnNameSpace.csv",
    "block_3sp": "block_3sp.csv",
    "sardine_anchovy_sst": "sardine_anchovy_sst.csv",
    "Lorenz5D": "LorenzData1000.csv",
    "SumFlow_1980-2005": "S12CD-S333-SumFlow_1980-2005.csv",
}


class _SampleData(Mapping[str, Any]):
    """Name to DataFrame, each read when it is first looked at."""

    def __init__(self) -> None:
        self._read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._read:
            file = _FILES[name]
            try:
                path = metadata.distribution("pyEDM").locate_file(os.path.join("pyEDM", "data", file))
            except metadata.PackageNotFoundError as error:
                raise missing_extra("pyEDM", "peers", f"sampleData[{name!r}]") from error
            self._read[name] = pandas().read_csv(str(path))
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_FILES)

    def __len__(self) -> int:
        return len(_FILES)


sampleData: Mapping[str, Any] = _SampleData()
