"""As `cupy.cuda.driver`."""


class CUDADriverError(RuntimeError):
    """As CuPy's."""
