"""What a backup is made of, each part alone, by plain tools: a clone, reads, hashes, compression, writes, questions.

Each part does what a full backup of the same server does of it, as many bytes, at the backup's own low priority.
"""

import os
import shlex
import shutil
import subprocess

GROUP_NICE = 10  # as evenkeel gives its session


class Parts:
    """Shell scripts by name; `threads` of each read, hash or compress at a time."""

    def __init__(self, server, room, memory):
        self.server, self.room, self.memory = server, room, memory
        self.clone = os.path.join(os.path.dirname(server.datadir), "parts-clone")
        self.cleanup()

    def prepare(self):
        """Copies the server's tables into memory: what hashes and compresses reads no disk."""
        self.files = [os.path.join(path, name) for path, _, names in os.walk(self.server.datadir)
                      for name in names if name.endswith(".ibd") or name.startswith("ibdata")]
        self.sample = os.path.join(self.memory, "parts-sample")
        with open(self.sample, "wb") as out:
            for file in self.files:
                with open(file, "rb") as part:
                    shutil.copyfileobj(part, out, 1 << 20)
        self.small = os.path.join(self.memory, "parts-sample.zst")
        subprocess.run(["zstd", "-q", "-f", "-1", self.sample, "-o", self.small], check=True)

    def cleanup(self):
        shutil.rmtree(self.clone, ignore_errors=True)
        for name in ("parts-sample", "parts-sample.zst"):
            if os.path.exists(os.path.join(self.memory, name)):
                os.unlink(os.path.join(self.memory, name))

    def cloned(self, rest):
        """A clone of all files, something done with it, and its removal."""
        clone, data = shlex.quote(self.clone), shlex.quote(self.server.datadir)
        return f"rm -rf {clone}; cp -a --reflink=always {data} {clone}; {rest}; rm -rf {clone}"

    def each(self, command, threads):
        """Runs a command over all cloned tables, in blocks, several at a time."""
        find = f"find {shlex.quote(self.clone)} -name '*.ibd' -o -name 'ibdata*'"
        return self.cloned(f"{find} | xargs -P {threads} -I FILE {command}")

    def scripts(self):
        sample, small = shlex.quote(self.sample), shlex.quote(self.small)
        out = shlex.quote(os.path.join(self.room, "parts-written"))
        ask = " ".join(map(shlex.quote, ["mariadb", *self.server.client(), "-N", "-e"]))
        asks = "SHOW GLOBAL STATUS LIKE 'Questions'; DO SLEEP(0.06); " * 50
        compress = f"zstd -q -c -{{}} -T1 --single-thread {sample}"
        return {
            "part: clone, kept 5 s": self.cloned("sleep 5"),
            "part: clone, read through the cache": self.each("dd if=FILE of=/dev/null bs=512k status=none", 1),
            "part: clone, read directly": self.each("dd if=FILE of=/dev/null bs=512k iflag=direct status=none", 1),
            "part: clone, read directly, two": self.each("dd if=FILE of=/dev/null bs=512k iflag=direct status=none", 2),
            "part: hash": f"b3sum --num-threads 1 {sample}",
            "part: hash, two": f"b3sum --num-threads 2 {sample}",
            "part: zstd -1": compress.format(1) + " > /dev/null",
            "part: zstd --fast=5": compress.format("-fast=5") + " > /dev/null",
            "part: lz4": f"lz4 -q -c -1 {sample} > /dev/null",
            "part: copy in memory": f"dd if={sample} of=/dev/null bs=512k status=none",
            "part: write, compressed": f"dd if={small} of={out} bs=1M oflag=direct conv=fsync status=none; rm {out}",
            "part: write, raw": f"dd if={sample} of={out} bs=1M oflag=direct conv=fsync status=none; rm {out}",
            "part: watch": f"{ask} {shlex.quote(asks)} > /dev/null",
            "part: lock": f"{ask} 'BACKUP STAGE START; BACKUP STAGE BLOCK_DDL; BACKUP STAGE BLOCK_COMMIT; BACKUP STAGE END'",
        }

    def kind(self, name, start):
        script = self.scripts()[name]

        def once(fresh):
            polite = f"echo {GROUP_NICE} > /proc/self/autogroup 2> /dev/null; renice -n 19 -p $$ > /dev/null; set -e; "
            return start(["sh", "-c", polite + script])

        return once
