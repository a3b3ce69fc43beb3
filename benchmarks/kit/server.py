"""A private MariaDB: own directory and socket, no option files, stopped by its pid."""

import os
import signal
import subprocess
import time

from .host import sh

MARIADBD = os.environ.get("MARIADBD", "/usr/sbin/mariadbd")


class Server:
    def __init__(self, datadir, log, *options):
        self.datadir = datadir
        self.socket = os.path.join(os.path.dirname(log), "s.sock")
        self.log = log
        self.options = options
        self.process = None

    def initialise(self):
        sh("mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={self.datadir}",
           "--auth-root-authentication-method=normal", "--skip-test-db")

    def start(self, *more):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [MARIADBD, "--no-defaults", "--user=root", f"--datadir={self.datadir}",
                 f"--socket={self.socket}", "--skip-networking", *self.options, *more],
                stdout=log, stderr=log)
        deadline = time.monotonic() + 300
        while True:
            try:
                return self.sql("SELECT 1")
            except RuntimeError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the server did not start, see {self.log}") from None
                time.sleep(0.1)

    def stop(self, how=signal.SIGTERM):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(300)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def client(self):
        """The arguments with which MariaDB's own programs reach this server."""
        return ["--no-defaults", f"--socket={self.socket}", "--user=root"]

    def cpu(self):
        """Processor time of the server's process so far, in seconds."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def sql(self, text):
        done = subprocess.run(["mariadb", *self.client(), "-N", "-B"], input=text,
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return done.stdout.strip()

    def clean(self):
        """Waits until no page in memory is newer than its file."""
        self.sql("SET GLOBAL innodb_max_dirty_pages_pct_lwm=0; SET GLOBAL innodb_max_dirty_pages_pct=0")
        deadline = time.monotonic() + 300
        while self.sql("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'").split()[1] != "0":
            if time.monotonic() > deadline:
                raise RuntimeError("the server does not come to rest")
            time.sleep(0.1)
        self.sql("SET GLOBAL innodb_max_dirty_pages_pct=90")
