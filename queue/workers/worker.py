#!/usr/bin/python3
"""A worker for a queue: worker.py SOCKET USER DATABASE.TABLE COMMAND…

Runs COMMAND for each row, its columns as further arguments. The row is gone when COMMAND succeeded, and
given back when it failed. SIGTERM ends it after the job in hand. The password is taken from MYSQL_PWD.
Needs Debian's python3-pymysql.
"""
import os, signal, subprocess, sys, time
import pymysql

socket, user, queue, *command = sys.argv[1:]
table = ".".join(f"`{part}`" for part in queue.split(".", 1))
idle, stopping, pause = True, False, 1


def stop(*_):
    global stopping
    stopping = True
    if idle:  # The connection ends, and the wait; a row that came in this moment goes back.
        os._exit(0)


signal.signal(signal.SIGTERM, stop)


def ask(cursor, sql, *values):
    cursor.execute(sql, values)
    return cursor.fetchone()


def work(cursor):
    global idle, pause
    while not stopping:
        idle = True
        answer = ask(cursor, "SELECT queue_wait(%s, 60)", queue)[0]
        idle = False
        if answer is None:
            sys.exit(f"there is no queue {queue}")
        if answer == 0: continue
        row = ask(cursor, f"SELECT * FROM {table}")
        if subprocess.run([*command, *map(str, row)]).returncode == 0:
            ask(cursor, "SELECT queue_end()")
            pause = 1
        else:
            ask(cursor, "SELECT queue_abort()")
            print(f"{queue}: failed, and given back: {row}", file=sys.stderr)
            time.sleep(pause)
            pause = min(pause * 2, 60)


while not stopping:
    try:
        password = os.environ.get("MYSQL_PWD", "")
        with pymysql.connect(unix_socket=socket, user=user, password=password, autocommit=True) as db:
            work(db.cursor())
    except (pymysql.err.OperationalError, pymysql.err.InterfaceError, pymysql.err.InternalError) as why:
        print(f"{queue}: {why}; connecting again", file=sys.stderr)
        idle = True
        time.sleep(1)
