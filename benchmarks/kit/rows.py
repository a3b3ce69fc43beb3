"""A database of sysbench's shape: tables of rows with an index, text that compresses about 2.5 times."""

import os
import random
import shutil
import subprocess

from .host import GIB, sh
from .server import Server

TABLES = 8
# What a row comes to in its table and its index, pages' slack included.
ROW_BYTES = 228
# How the server runs in every benchmark on this database.
OPTIONS = [
    "--innodb-buffer-pool-size=1G", "--innodb-log-file-size=256M", "--log-bin=binlog", "--server-id=1",
    "--innodb-buffer-pool-load-at-startup=0", "--innodb-buffer-pool-dump-at-shutdown=0",
]


def make(cache, gib):
    """Makes the database, or takes the one an earlier run left under `cache`; returns its datadir."""
    done = os.path.join(cache, f"rows-{gib:g}")
    if os.path.isdir(done):
        return done
    os.makedirs(cache, exist_ok=True)
    datadir = done + ".part"
    shutil.rmtree(datadir, ignore_errors=True)
    server = Server(datadir, os.path.join(cache, "load.log"), *OPTIONS)
    server.initialise()
    rows = int(gib * GIB / TABLES / ROW_BYTES)
    server.start("--innodb-doublewrite=0", "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin")
    try:
        server.sql("CREATE DATABASE bench")
        loads = [subprocess.Popen(["mariadb", *server.client(), "bench", "-e", fill(number, rows)])
                 for number in (0, 1)]
        if any([load.wait() for load in loads]):
            raise RuntimeError("loading the database failed")
        server.clean()
    finally:
        server.stop()
    os.rename(datadir, done)
    return done


def fill(half, rows):
    """SQL for every other table."""
    group = lambda seed: f"LPAD(CRC32(seq*{seed}), 11, '0')"
    text = lambda seeds: "CONCAT_WS('-', " + ", ".join(map(group, seeds)) + ")"
    lines = ["SET unique_checks=0, foreign_key_checks=0"]
    for number in range(1 + half, TABLES + 1, 2):
        lines += [
            f"CREATE TABLE sbtest{number} (id INT NOT NULL PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, "
            "pad CHAR(60) NOT NULL) ENGINE=InnoDB CHARSET=latin1",
            f"INSERT INTO sbtest{number} SELECT seq, CRC32(seq*7+{number}) % {rows}, "
            f"{text(range(10 * number, 10 * number + 10))}, {text(range(100 * number, 100 * number + 5))} "
            f"FROM seq_1_to_{rows}",
            f"CREATE INDEX k_{number} ON sbtest{number}(k)",
        ]
    return ";\n".join(lines)


def place(source, mount):
    """Copies the database onto a filesystem; returns its datadir, in a subvolume on btrfs."""
    home = os.path.join(mount.path, "server")
    os.mkdir(home)
    datadir = os.path.join(home, "data")
    if mount.fs == "btrfs":
        sh("btrfs", "subvolume", "create", datadir)
    else:
        os.mkdir(datadir)
    sh("cp", "-a", "--sparse=never", source + "/.", datadir)
    return datadir


def change(server, pages, seed):
    """Updates one row in each of so many pages chosen at random, evenly over the tables."""
    chance = random.Random(seed)
    rows = int(server.sql("SELECT MAX(id) FROM bench.sbtest1"))
    each = pages // TABLES
    for number in range(1, TABLES + 1):
        ids = sorted(chance.sample(range(1, rows + 1), each))
        for at in range(0, len(ids), 500):
            some = ",".join(map(str, ids[at:at + 500]))
            server.sql(f"UPDATE bench.sbtest{number} SET c = REVERSE(c) WHERE id IN ({some})")
    server.clean()
