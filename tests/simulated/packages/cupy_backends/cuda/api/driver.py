"""As `cupy_backends.cuda.api.driver`."""

CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8


def funcSetAttribute(kernel: int, attribute: int, value: int) -> None:
    pass
