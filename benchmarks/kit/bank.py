"""The demo's bank, larger: accounts that transfers touch, and an archive that nobody touches."""

import os
import signal
import subprocess
import threading
import time

from .server import Server

ACCOUNTS = 1_000_000
OPTIONS = [
    "--innodb-buffer-pool-size=512M", "--innodb-log-file-size=256M", "--log-bin=binlog", "--server-id=1",
    "--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-load-at-startup=0",
    "--innodb-buffer-pool-dump-at-shutdown=0",
]


def load(server, archive_rows, accounts=ACCOUNTS):
    """Fills the bank; a row of the archive comes to about 230 bytes."""
    server.sql(f"""
        SET SESSION sql_log_bin=0, unique_checks=0, foreign_key_checks=0;
        CREATE DATABASE bank; USE bank;
        CREATE TABLE account (id INT UNSIGNED PRIMARY KEY, balance BIGINT NOT NULL, owner CHAR(60) NOT NULL)
            ENGINE=InnoDB CHARSET=latin1;
        {ledger()}
        CREATE TABLE archive (id INT UNSIGNED PRIMARY KEY, note VARCHAR(255) NOT NULL) ENGINE=InnoDB CHARSET=latin1;
        INSERT INTO account SELECT seq, 1000, SHA2(seq, 224) FROM seq_1_to_{accounts};
        INSERT INTO archive SELECT seq, CONCAT(SHA2(seq, 512), REPEAT('transfer ', 8)) FROM seq_1_to_{archive_rows};
        """)


def load_tables(server, tables, accounts=100):
    """Fills a bank of many small account tables."""
    lines = ["SET SESSION sql_log_bin=0; CREATE DATABASE bank; USE bank;", ledger()]
    for n in range(1, tables + 1):
        lines.append(f"CREATE TABLE account{n} (id INT UNSIGNED PRIMARY KEY, balance BIGINT NOT NULL, "
                     f"owner CHAR(60) NOT NULL) ENGINE=InnoDB CHARSET=latin1; "
                     f"INSERT INTO account{n} SELECT seq, 1000, SHA2(seq, 224) FROM seq_1_to_{accounts};")
    server.sql("\n".join(lines))


def ledger():
    return ("CREATE TABLE ledger (client INT UNSIGNED NOT NULL, number INT UNSIGNED NOT NULL, debit INT UNSIGNED "
            "NOT NULL, credit INT UNSIGNED NOT NULL, amount INT UNSIGNED NOT NULL, PRIMARY KEY (client, number)) "
            "ENGINE=InnoDB;")


class Traffic:
    """Clients that transfer money until stopped, sampled every 20 ms."""

    def __init__(self, program, server, accounts=ACCOUNTS, tables=1, clients=4):
        self.process = subprocess.Popen(
            [program, f"--socket={server.socket}", f"--accounts={accounts}", f"--tables={tables}",
             f"--clients={clients}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.samples = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            at, done, slowest = map(int, line.split())
            self.samples.append((at / 1e9, done, slowest / 1e6))

    def between(self, begin, end):
        """Returns transfers per second and the slowest transfer (s) between two monotonic times."""
        time.sleep(0.05)
        some = [s for s in self.samples if begin <= s[0] <= end]
        if len(some) < 3:
            raise RuntimeError("too few samples of the traffic")
        rate = (some[-1][1] - some[0][1]) / (some[-1][0] - some[0][0])
        return rate, max(s[2] for s in some)

    def calm(self, seconds):
        """Waits, and returns transfers per second meanwhile."""
        begin = time.monotonic()
        time.sleep(seconds)
        if self.process.poll() is not None:
            raise RuntimeError("the traffic ended")
        return self.between(begin, time.monotonic())[0]

    def stop(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGKILL)
                self.process.wait()
