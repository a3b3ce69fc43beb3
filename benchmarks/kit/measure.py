"""Runs one program and says what it cost."""

import json
import os
import statistics
import subprocess
import time


def run(words, env=None, output=None):
    """Runs a program; returns what it cost, and its output.

    `read` are the bytes its processes fetched from devices (what /proc/PID/io calls read_bytes, as
    the kernel adds it up for a program that has ended), `peak` the largest resident set.
    """
    out = open(output, "wb") if output else subprocess.PIPE
    err = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"evenkeel-bench-{os.getpid()}.err")
    with open(err, "w+") as errors:
        begun = time.monotonic()
        process = subprocess.Popen([str(w) for w in words], stdout=out, stderr=errors,
                                   env={**os.environ, **(env or {})})
        text = "" if output else process.stdout.read().decode(errors="replace")
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read()
    os.unlink(err)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))} ended with {process.returncode}: {said[-2000:]}{text[-500:]}")
    return {
        "seconds": seconds,
        "cpu": usage.ru_utime + usage.ru_stime,
        "read": usage.ru_inblock * 512,
        "peak": usage.ru_maxrss * 1024,
        "output": text,
    }


def stored(path):
    """Bytes of the files under a directory, as `du --apparent-size` counts, files only."""
    total = 0
    for top, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(top, name)).st_size
            except FileNotFoundError:
                pass
    return total


def median(values):
    return statistics.median(values)


def table(head, rows):
    """Returns a Markdown table, first column left, others right."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(row):
        cells = [row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join(["-" * (widths[0] + 2)] + ["-" * (w + 1) + ":" for w in widths[1:]]) + "|"
    return "\n".join([line(head), rule, *map(line, rows)])


def mb(value):
    return f"{value / 1e6:,.1f} MB" if value < 1e9 else f"{value / 1e9:,.2f} GB"


def version(*words):
    """The first line of what a program says of itself; None where it is not installed."""
    try:
        return subprocess.run(words, capture_output=True, text=True).stdout.split("\n")[0].strip()
    except FileNotFoundError:
        return None


def machine():
    """Says what it ran on."""
    with open("/proc/cpuinfo") as info:
        model = next((l.split(":")[1].strip() for l in info if l.startswith("model name")), "?")
    with open("/proc/meminfo") as info:
        memory = int(info.readline().split()[1]) * 1024
    return {
        "cpu": f"{os.cpu_count()} x {model}",
        "memory": memory,
        "kernel": os.uname().release,
        "load": os.getloadavg()[0],
        "mariadb": version("mariadbd", "--version"),
        "restic": version("restic", "version"),
    }


def write(directory, name, document):
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, name + ".json")
    with open(path, "w") as out:
        json.dump({"machine": machine(), **document}, out, indent=1)
        out.write("\n")
    print(f"\nwritten: {path}")
