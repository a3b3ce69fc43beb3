"""This host as another one: an ssh daemon on loopback, behind a proxy that counts bytes."""

import os
import socket
import subprocess
import threading
import time

from .host import sh


class Sshd:
    """A private daemon. Lets root in by a key of its own."""

    def __init__(self, host):
        self.top = os.path.join(host.top, "sshd")
        os.mkdir(self.top)
        os.makedirs("/run/sshd", exist_ok=True)
        for key in ("key", "host-key"):
            sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(self.top, key))
        port = free_port()
        config = os.path.join(self.top, "config")
        with open(config, "w") as out:
            out.write(f"Port {port}\nListenAddress 127.0.0.1\nHostKey {self.top}/host-key\n"
                      f"AuthorizedKeysFile {self.top}/key.pub\nUsePAM no\nStrictModes no\nPidFile none\n"
                      f"PermitRootLogin yes\nSetEnv TMPDIR={self.top}\n")
        self.daemon = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", config],
                                       stderr=subprocess.DEVNULL)
        host.at_exit(self.stop)
        self.proxy = Proxy(port)
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            except OSError:
                if self.daemon.poll() is not None:
                    raise RuntimeError("sshd did not start") from None
                time.sleep(0.05)

    def stop(self):
        self.daemon.terminate()
        self.daemon.wait()

    def options(self):
        """Returns evenkeel's options to get in."""
        command = (f"ssh -F /dev/null -p {self.proxy.port} -i {self.top}/key -o BatchMode=yes "
                   "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR")
        return ["--ssh", "root@127.0.0.1", "--ssh-command", command]


class Proxy:
    """Hands connections on, and counts."""

    def __init__(self, target):
        self.bytes = 0
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.target))
            # What is small goes on at once: a link has no Nagle of its own, and ssh asks for none.
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self.carry, args=(one, other), daemon=True).start()

    def carry(self, one, other):
        buffer = bytearray(1 << 20)
        try:
            while length := one.recv_into(buffer):
                self.bytes += length
                other.sendall(memoryview(buffer)[:length])
        except OSError:
            pass
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
