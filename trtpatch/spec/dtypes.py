"""Element types of tensors, by the names that NumPy gives them."""

from __future__ import annotations

from typing import Literal

Dtype = Literal["float32", "float16", "int32", "int64", "uint64", "uint32", "uint8", "int8"]
"""What a kernel can read and write."""

C_TYPES: dict[str, str] = {
    "float32": "float",
    "float16": "float16",
    "int32": "int",
    "int64": "long long",
    "uint64": "unsigned long long",
    "uint32": "unsigned int",
    "uint8": "unsigned char",
    "int8": "signed char",
}
"""What each `Dtype` is called in a kernel."""

ITEMSIZE = {
    "float32": 4, "float16": 2, "int32": 4, "int64": 8, "uint64": 8, "uint32": 4, "uint8": 1,
    "int8": 1, "bool": 1, "float64": 8,
}  # fmt: skip
"""Bytes of an element, for each type that a buffer can have."""
