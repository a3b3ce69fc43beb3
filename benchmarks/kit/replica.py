"""A source and a replica of it: two private MariaDBs over loopback, row events, nothing shared."""

import os
import shutil
import socket
import time
from collections import Counter

from .host import sh
from .server import Server

COMMON = ["--skip-networking=0", "--bind-address=127.0.0.1", "--innodb-buffer-pool-size=256M",
          "--innodb-flush-log-at-trx-commit=2", "--binlog-format=ROW"]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Origin:
    """The files from which pairs are made: a source that `fill` has filled, stopped."""

    def __init__(self, top, fill):
        room = os.path.join(top, "origin")
        os.mkdir(room)
        server = Server(os.path.join(top, "origin-data"), os.path.join(room, "log"), *COMMON, "--log-bin=source",
                        "--server-id=1", f"--port={free_port()}")
        server.initialise()
        server.start()
        server.sql("CREATE USER repl@'%' IDENTIFIED BY 'repl'; GRANT REPLICATION SLAVE ON *.* TO repl@'%';"
                   "GRANT ALL ON *.* TO tool@'%' IDENTIFIED BY 'tool' WITH GRANT OPTION")
        fill(server)
        server.stop()
        self.datadir = server.datadir


class Pair:
    """Both with the files of the origin; the replica follows by position."""

    def __init__(self, top, origin, options=()):
        self.top = top
        self.options = options
        self.source = self.server("source", 1, origin)
        self.replica = self.server("replica", 2, origin)
        self.source.start()
        self.replica.start()
        place = self.source.sql("SHOW MASTER STATUS").split("\t")
        self.replica.sql(f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={self.source.port}, "
                         f"MASTER_USER='repl', MASTER_PASSWORD='repl', MASTER_LOG_FILE='{place[0]}', "
                         f"MASTER_LOG_POS={place[1]}, MASTER_CONNECT_RETRY=1; START SLAVE")
        self.catch_up()

    def server(self, name, number, origin):
        room = os.path.join(self.top, name)
        os.mkdir(room)
        port = free_port()
        server = Server(os.path.join(self.top, name + "-data"), os.path.join(room, "log"), *COMMON,
                        f"--port={port}", f"--server-id={number}", f"--log-bin={name}", f"--relay-log={name}-relay",
                        "--report-host=127.0.0.1", f"--report-port={port}", *self.options)
        server.port = port
        shutil.copytree(origin.datadir, server.datadir)
        return server

    def unlogged(self, text):
        """What somebody did on the replica alone."""
        self.replica.sql("SET sql_log_bin=0; " + text)

    def status(self):
        """The fields of SHOW SLAVE STATUS."""
        said = sh("mariadb", *self.replica.client(), "-B", "-e", "SHOW SLAVE STATUS")
        names, values = (line.split("\t") for line in said.splitlines()[:2])
        return dict(zip(names, values))

    def is_stopped(self):
        return self.status().get("Slave_SQL_Running") != "Yes"

    def catch_up(self, limit=60):
        """Waits until the replica has applied all; returns whether it has."""
        place = self.source.sql("SHOW MASTER STATUS").split("\t")
        end = time.monotonic() + limit
        while time.monotonic() < end:
            now = self.status()
            if (now.get("Relay_Master_Log_File"), now.get("Exec_Master_Log_Pos")) == (place[0], place[1]):
                return True
            if now.get("Last_SQL_Errno", "0") != "0":
                return False
            time.sleep(0.1)
        return False

    def rows(self, server, table, order):
        return server.sql(f"SELECT * FROM {table} ORDER BY {order}").splitlines()

    def differing(self, tables):
        """How many rows are on one side only, by reading all of them; a changed row counts once."""
        total = 0
        for table, order in tables.items():
            source = self.rows(self.source, table, order)
            try:
                replica = self.rows(self.replica, table, order)
            except RuntimeError:
                replica = []
            ours, theirs = Counter(source), Counter(replica)
            missing = sum((ours - theirs).values())
            extra = sum((theirs - ours).values())
            total += max(missing, extra)
        return total

    def stop(self):
        for server in [self.replica, self.source]:
            server.stop()

