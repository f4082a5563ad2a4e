"""As `cupy.cuda.function`; a module's code is the name of a unit built for the host."""

from __future__ import annotations

from typing import Any

from cupy.streams import get_current_stream
from trtpatch.executors.host_unit import HostUnit
from trtpatch.plan import Launch

UNITS: dict[bytes, HostUnit] = {}


class Module:
    """As CuPy's."""

    def load(self, code: bytes) -> None:
        self._unit = UNITS[code]

    def get_function(self, entry: str) -> Function:
        return Function(self._unit, entry)


class Function:
    """As CuPy's."""

    ptr = 0

    def __init__(self, unit: HostUnit, entry: str) -> None:
        self._unit = unit
        self._entry = entry

    def __call__(self, grid: Any, block: Any, args: Any, shared_mem: int = 0) -> None:
        launch = Launch(self._entry, tuple(grid), tuple(block), shared_mem)
        data = args[0].tobytes()
        get_current_stream().queue.put(lambda: self._unit.launch(launch, data))
