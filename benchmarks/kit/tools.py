"""The three tools that are compared, each with a backup of everything and one of what changed."""

import json
import os
import shutil

from . import measure
from .host import clone_tree, sh

WORKERS = 2


class Evenkeel:
    """Hot, against the running server. The repository is compressed (zstd 1)."""

    name = "evenkeel"

    def __init__(self, program, server, room):
        self.program = program
        self.server = server
        self.target = os.path.join(room, "evenkeel")

    def backup(self, number, *more):
        cost = measure.run([self.program, "backup", self.target, *self.server.client(), "--json", *more])
        report = json.loads(cost.pop("output"))
        cost["report"] = report
        return cost

    def prepare(self):
        pass


class MariadbBackup:
    """Hot, against the running server; what changed since the last one. Not compressed: its default."""

    name = "mariadb-backup"

    def __init__(self, server, room):
        self.server = server
        self.room = os.path.join(room, "mariadb-backup")
        os.mkdir(self.room)

    @property
    def target(self):
        return self.room

    def backup(self, number):
        words = ["mariadb-backup", *self.server.client(), "--backup", f"--parallel={WORKERS}",
                 f"--target-dir={self.room}/{number}", f"--datadir={self.server.datadir}"]
        if number > 0:
            words.append(f"--incremental-basedir={self.room}/{number - 1}")
        cost = measure.run(words)
        del cost["output"]
        return cost

    def prepare(self):
        pass


class Restic:
    """A reflink copy of the data directory, always at the same path. Making the copy is not counted.

    `--ignore-inode --ignore-ctime` let it skip files whose size and time did not change although the
    copy is new. The repository is compressed (format 2, automatic).
    """

    name = "restic"

    def __init__(self, server, room):
        self.server = server
        self.target = os.path.join(room, "restic")
        self.view = os.path.join(os.path.dirname(os.path.dirname(server.datadir)), "view")
        self.env = {"RESTIC_PASSWORD": "bench", "RESTIC_CACHE_DIR": os.path.join(room, "restic-cache")}
        sh("restic", "init", "--repository-version", "2", "-r", self.target, env={**os.environ, **self.env})

    def prepare(self):
        shutil.rmtree(self.view, ignore_errors=True)
        clone_tree(self.server.datadir, self.view)

    def backup(self, number):
        cost = measure.run(["restic", "-r", self.target, "backup", "--ignore-inode", "--ignore-ctime",
                            "--quiet", self.view], env=self.env)
        del cost["output"]
        return cost
