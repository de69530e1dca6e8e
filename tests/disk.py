"""A disk that fills up, without one: files of this process can grow to so many bytes."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def disk_limit(size: int) -> Iterator[None]:
    """A write beyond that fails as on a full disk: Python has the signal ignored that would come with it."""
    import resource  # Unix alone has it

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
