"""Which blocks of a data directory really changed, found by comparing every byte."""

import os
import subprocess

BLOCK = 16384
FRAME = 1 << 20
# Not the server's data: these are not in any backup.
SKIP = ("ibtmp1", ".pid", ".sock")


def files(datadir):
    for top, _, names in os.walk(datadir):
        for name in names:
            path = os.path.join(top, name)
            if not name.endswith(SKIP) and os.path.isfile(path):
                yield os.path.relpath(path, datadir)


def changed(before, now):
    """Compares two copies of a data directory block by block (16 KiB).

    Returns the number of changed bytes in tablespaces and in all files, and what the changed blocks
    of all files come to when `zstd -1` packs them in frames of 1 MiB.
    """
    spaces = everything = packed = 0
    waiting = bytearray()
    for name in sorted(files(now)):
        for block in differing(os.path.join(before, name), os.path.join(now, name)):
            everything += len(block)
            if name.endswith(".ibd") or os.path.basename(name).startswith(("ibdata", "undo")):
                spaces += len(block)
            waiting += block
            if len(waiting) >= FRAME:
                packed += zstd(waiting[:FRAME])
                del waiting[:FRAME]
    return {"tablespaces": spaces, "all": everything, "packed": packed + zstd(waiting)}


def differing(before, now):
    with open(now, "rb") as new:
        old = open(before, "rb") if os.path.exists(before) else open(os.devnull, "rb")
        with old:
            while part := new.read(FRAME):
                base = old.read(len(part))
                if part == base:
                    continue
                for at in range(0, len(part), BLOCK):
                    if part[at:at + BLOCK] != base[at:at + BLOCK]:
                        yield part[at:at + BLOCK]


def zstd(data):
    if not data:
        return 0
    return len(subprocess.run(["zstd", "-1", "-c"], input=data, capture_output=True, check=True).stdout)


def total(datadir):
    """Bytes of all files."""
    return sum(os.path.getsize(os.path.join(datadir, name)) for name in files(datadir))
