"""A directory of one run's own, with filesystems in loop files, that is gone when the run ends."""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile

GIB = 1 << 30


def sh(*words, **more):
    """Runs a command and returns its output; its errors end the benchmark."""
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


class Mount:
    """A filesystem in a loop file. The loop device does direct I/O: nothing is cached twice."""

    def __init__(self, top, name, fs, size):
        self.path = os.path.join(top, name)
        self.image = self.path + ".img"
        self.fs = fs
        os.mkdir(self.path)
        # Allocated beforehand, so that writing does not wait for the disk below to allocate.
        sh("fallocate", "-l", size, self.image)
        if fs == "xfs":
            sh("mkfs.xfs", "-q", "-K", "-m", "reflink=1", self.image)
        elif fs == "ext4":
            sh("mkfs.ext4", "-q", "-m", "0", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", self.image)
        else:
            sh("mkfs.btrfs", "-q", "-K", self.image)
        self.device = sh("losetup", "--direct-io=on", "-f", "--show", self.image).strip()
        self.mounted = False
        self.mount()

    def mount(self):
        sh("mount", self.device, self.path)
        self.mounted = True

    def unmount(self):
        if self.mounted:
            sh("umount", self.path)
            self.mounted = False

    def remount(self):
        self.unmount()
        self.mount()

    def sectors(self):
        """Returns (bytes read, bytes written) of the device since it exists."""
        name = os.path.basename(self.device)
        with open(f"/sys/block/{name}/stat") as stat:
            fields = stat.read().split()
        return int(fields[2]) * 512, int(fields[6]) * 512

    def remove(self):
        if self.mounted:
            # Lazily: whatever still holds it, the device goes with its last user.
            subprocess.run(["umount", "-l", self.path], stderr=subprocess.DEVNULL)
        subprocess.run(["losetup", "-d", self.device], stderr=subprocess.DEVNULL)


class WorkDirectory:
    """Everything one benchmark makes. Removed at exit, also after an error or a signal."""

    def __init__(self, parent, precedence=True):
        if precedence:
            take_precedence()
        self.top = tempfile.mkdtemp(prefix="evenkeel-bench-", dir=parent)
        self.undo = []
        atexit.register(self.remove)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: sys.exit(143))

    def mount(self, name, fs, size, parent=None):
        """Makes a filesystem, its loop file under another parent directory if one is named."""
        top = self.top
        if parent:
            top = tempfile.mkdtemp(prefix="evenkeel-bench-", dir=parent)
            self.at_exit(lambda: shutil.rmtree(top, ignore_errors=True))
        mount = Mount(top, name, fs, size)
        self.undo.append(mount.remove)
        return mount

    def at_exit(self, action):
        self.undo.append(action)

    def remove(self):
        while self.undo:
            try:
                self.undo.pop()()
            except Exception as error:  # the rest must still be removed
                print(f"cleaning up: {error}", file=sys.stderr)
        shutil.rmtree(self.top, ignore_errors=True)


def take_precedence():
    """Puts this session, the server and its clients, before whatever else runs on the machine.

    Moderately: the kernel's own threads, which do the work of loop devices, must not starve. Where the
    kernel groups tasks by session, a group's nice value is what counts between sessions.
    """
    if os.getpid() != os.getsid(0):
        try:
            os.setsid()
        except PermissionError:
            pass
    prefer_session()


def prefer_session():
    """Gives the calling process's session the precedence all sessions of a benchmark have."""
    try:
        with open("/proc/self/autogroup", "w") as group:
            group.write("-5")
    except OSError:
        pass


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as knob:
        knob.write("3\n")


def clone_tree(source, target):
    """Reflink copy of a directory, times kept."""
    sh("cp", "-a", "--reflink=always", source, target)
