#!/bin/bash
# systemctl, as far as pages of the book use it, where there is no systemd.
set -euo pipefail

wait_until() {
    local _
    for _ in {1..600}; do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.05
    done
    tail /var/log/mariadb.log >&2
    exit 1
}

is_gone() { ! kill -0 "$1" 2>/dev/null; }

case $* in
    "start mariadb")
        install -d -o mysql -g mysql /run/mysqld
        setsid --fork setpriv --reuid=mysql --regid=mysql --init-groups mariadbd >>/var/log/mariadb.log 2>&1 </dev/null
        wait_until mariadb-admin ping
        ;;
    "stop mariadb")
        server=$(cat /run/mysqld/mysqld.pid)
        kill "$server"
        wait_until is_gone "$server"
        ;;
    "start evenkeel-backup@"*)
        name=${2#*@}
        set -a
        # shellcheck disable=SC1090 # that of the unit
        . "/etc/evenkeel/$name.conf"
        command=$(sed -n 's,^ExecStart=/usr/bin/,,p' /usr/local/lib/systemd/system/evenkeel-backup@.service)
        eval "$command" >>"/var/log/${2}.log" 2>&1
        ;;
    "enable --now evenkeel-"*.timer)
        unit=${3%@*.timer}
        [ "$unit" = "$3" ] || unit=$unit@.timer
        test -f "/usr/local/lib/systemd/system/$unit"
        ;;
    *)
        echo "systemctl $*: not in this house" >&2
        exit 1
        ;;
esac
