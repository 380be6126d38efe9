"""Which process works on what: locks of the operating system on one empty file.

Any number of processes, on one host or on several that share a file system, may work on one results
folder. Each group of cells and the merged table have a byte of the file `lock`, far beyond its end
(it stays empty), and who holds the lock on that byte works on them.

Why locks and not claim files with a heartbeat: the kernel frees a lock at the moment its holder
dies, however it dies, so there is no claim to clean up, no age at which a claim counts as dead, no
clock to agree on, and no race between two who take over the same dead claim. One file for all,
because byte ranges need no files that come and go. POSIX record locks (`fcntl.lockf`) rather than
`flock`: network file systems (NFS, Lustre, GPFS, SMB) pass them on to the server, and a child that
outlives its parent does not inherit them.

What that costs: a whole host that crashes keeps its locks until the server notices (about 90 s on
NFS 4). A file system without locks cannot keep processes apart; then `Claims.exclusive` is False,
and two processes may compute the same cell. The results are right even so: a cell's numbers do not
depend on who computes it, and every file is replaced as a whole. The lock belongs to the process,
not to the thread: threads of one process are not kept apart.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None

PAUSE_SECONDS = 0.1
_FILE = "lock"
_TABLE = 0
_TO_THE_END = 0
_BUSY = (errno.EACCES, errno.EAGAIN)
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


class Claims:
    """Claims of this process on the work in one results folder; a context manager.

    Attributes:
        exclusive: Whether the file system has kept other processes out so far.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, Claims(Path(folder)) as claims:
        ...     with claims.group("5feceb66ffc86f38") as mine:
        ...         mine
        True
    """

    def __init__(self, folder: Path) -> None:
        # Closing any descriptor of the file frees all locks of the process: one object at a time.
        self._file = os.open(folder / _FILE, os.O_RDWR | os.O_CREAT, 0o666)
        self.exclusive = fcntl is not None

    def __enter__(self) -> Claims:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    @contextmanager
    def group(self, name: str) -> Iterator[bool]:
        """Claim a group, by its hexadecimal name; gives False where another process holds it."""
        # 60 bits, so that the offset fits; a collision would only make one group wait for another.
        with self._held(1 + int(name[:15], 16), 1) as mine:
            yield mine

    @contextmanager
    def table(self) -> Iterator[None]:
        """Claim the merged table and the manifest; waits, for they are never held for long."""
        while True:
            with self._held(_TABLE, 1) as mine:
                if mine:
                    yield
                    return
            time.sleep(PAUSE_SECONDS)

    @contextmanager
    def everything(self) -> Iterator[bool]:
        """Claim all there is; gives True where no other process is at work. Ends other claims."""
        with self._held(_TABLE, _TO_THE_END) as mine:
            yield mine and self.exclusive

    @contextmanager
    def _held(self, start: int, length: int) -> Iterator[bool]:
        mine = self._take(start, length)
        try:
            yield mine
        finally:
            if mine and self.exclusive and fcntl is not None:
                fcntl.lockf(self._file, fcntl.LOCK_UN, length, start)

    def _take(self, start: int, length: int) -> bool:
        if fcntl is None:
            return True
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
        except OSError as error:
            if error.errno in _BUSY:
                return False
            if error.errno not in _NO_LOCKS:
                raise
            self.exclusive = False
        return True
