"""TPC-C's transactions as a load: what the server commits, sampled ten times a second."""

import subprocess
import threading
import time

from .host import sh

LONG = "86400"


def load(program, server, warehouses):
    """Fills the tables."""
    sh(program, "bench", "tpcc", "load", f"--warehouses={warehouses}", *server.client(), "--quiet")


class Orders:
    """Clients that run TPC-C's transactions until stopped. Same interface as the bank's traffic."""

    def __init__(self, program, server, connections=8):
        self.process = subprocess.Popen(
            [program, "bench", "tpcc", "run", f"--connections={connections}", "--ramp-up=0", f"--measure={LONG}",
             "--no-check", "--quiet", *server.client()], stdout=subprocess.DEVNULL, start_new_session=True)
        ask = "SHOW GLOBAL STATUS LIKE 'Com_commit'; DO SLEEP(0.1);\n"
        self.watch = subprocess.Popen(["mariadb", *server.client(), "-N", "-B", "--unbuffered"],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.samples = []
        self.reader = threading.Thread(target=self.read, args=(ask,), daemon=True)
        self.reader.start()

    def read(self, ask):
        try:
            while True:
                self.watch.stdin.write(ask)
                self.watch.stdin.flush()
                for line in self.watch.stdout:
                    if line.startswith("Com_commit"):
                        self.samples.append((time.monotonic(), int(line.split()[1])))
                        break
                else:
                    return
        except (BrokenPipeError, ValueError):
            return

    def between(self, begin, end):
        """Returns transactions per second between two monotonic times, and the longest time without one (s)."""
        time.sleep(0.15)
        some = [s for s in self.samples if begin <= s[0] <= end]
        if len(some) < 3:
            raise RuntimeError("too few samples of the load")
        stalls, since = [0.0], some[0][0]
        for (_, before), (at, after) in zip(some, some[1:]):
            if after > before:
                since = at
            stalls.append(at - since)
        return (some[-1][1] - some[0][1]) / (some[-1][0] - some[0][0]), max(stalls)

    def calm(self, seconds):
        """Waits, and returns transactions per second meanwhile."""
        begin = time.monotonic()
        time.sleep(seconds)
        if self.process.poll() is not None:
            raise RuntimeError("the load ended")
        return self.between(begin, time.monotonic())[0]

    def stop(self):
        for process in (self.process, self.watch):
            if process.poll() is None:
                process.terminate()
                process.wait(60)
