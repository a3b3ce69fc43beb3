"""A SeaweedFS on loopback: a real S3 server, as testkit/setup fetched it."""

import glob
import json
import os
import socket
import subprocess
import time
import urllib.request

BUCKET = "backups"
KEY, SECRET = "evenkeel-bench", "not-a-secret"


class Seaweed:
    """A private server with one bucket, its data in `directory`; started by `before`, words of a command."""

    def __init__(self, directory, log, before=()):
        self.directory = directory
        self.log = log
        self.before = before
        self.process = None
        self.ports = free_ports(4)

    def start(self):
        os.mkdir(self.directory)
        config = os.path.join(self.directory, "identities.json")
        with open(config, "w") as out:
            json.dump({"identities": [{"name": "bench",
                                       "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
                                       "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}, out)
        master, volume, filer, s3 = self.ports
        words = [*self.before, program(), "-logtostderr", "server", f"-dir={self.directory}", "-ip=127.0.0.1",
                 "-ip.bind=127.0.0.1", "-filer", "-s3", "-volume.max=200",
                 "-master.volumeSizeLimitMB=1024", "-master.telemetry=false", "-s3.port.iceberg=0",
                 "-s3.port.lance=0", f"-filer.localSocket={self.directory}/filer",
                 f"-s3.localSocket={self.directory}/s3", f"-master.port={master}", f"-volume.port={volume}",
                 f"-filer.port={filer}", f"-s3.port={s3}", f"-s3.config={config}"]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while not self.has_bucket():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError(f"SeaweedFS did not start, see {self.log}")
            time.sleep(0.1)

    def has_bucket(self):
        """Makes the bucket; whether that worked."""
        _, _, filer, s3 = self.ports
        try:
            socket.create_connection(("127.0.0.1", s3)).close()
            request = urllib.request.Request(f"http://127.0.0.1:{filer}/buckets/{BUCKET}/", method="POST")
            return urllib.request.urlopen(request).status == 201
        except OSError:
            return False

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
        for name, port in zip(("master", "volume", "filer", "s3"), self.ports):
            socket_path = f"/tmp/seaweedfs-{name}-grpc-{port + 10000}.sock"
            if os.path.exists(socket_path):
                os.unlink(socket_path)

    def url(self, name):
        return f"s3://{BUCKET}/{name}"

    def environment(self):
        return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.ports[3]}", "AWS_ALLOW_HTTP": "true"}


def program():
    cache = os.environ.get("EVENKEEL_TEST_CACHE") or "/var/cache/evenkeel-test"
    found = glob.glob(os.path.join(cache, "seaweedfs-*", "weed"))
    if not found:
        raise RuntimeError("SeaweedFS is not there: run testkit/setup")
    return found[-1]


def free_ports(count):
    """Ports that are free, and so are those 10 000 higher, which it takes as well: all below those that
    the kernel gives to whoever connects somewhere."""
    found = []
    for port in range(11000 + os.getpid() % 10000, 22000):
        try:
            for one in (port, port + 10000):
                socket.create_server(("127.0.0.1", one)).close()
            found.append(port)
        except OSError:
            continue
        if len(found) == count:
            return found
    raise RuntimeError("no free ports")
