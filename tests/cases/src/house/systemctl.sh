#!/bin/bash
# systemctl, as far as pages of the book use it, where no systemd runs. Units are enabled by the real one.
set -euo pipefail

units=/usr/local/lib/systemd/system

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

# Runs a service of ours as its unit says: run_unit NAME, with or without an instance behind an @.
run_unit() {
    local unit=$units/$1.service instance= file command
    if [ ! -e "$unit" ]; then
        instance=${1#*@} unit=$units/${1%%@*}@.service
    fi
    file=$(sed -n "s,^EnvironmentFile=,,p" "$unit")
    file=${file//%i/$instance}
    set -a
    # What `Environment=` has is empty.
    OPTIONS=
    # A file behind a dash may be missing.
    if [ -e "${file#-}" ] || [ "${file#-}" = "$file" ]; then
        # shellcheck disable=SC1090 # that of the unit
        . "${file#-}"
    fi
    set +a
    command=$(sed -n 's,^ExecStart=-\?/usr/bin/,,p' "$unit")
    eval "echo \"starting $command\"" >>"/var/log/$1.log"
    eval "$command" >>"/var/log/$1.log" 2>&1 || grep -q '^ExecStart=-' "$unit"
}

case $* in
    "start mariadb")
        for link in /etc/systemd/system/mariadb.service.wants/*.service; do
            [ ! -e "$link" ] || run_unit "$(basename "$link" .service)"
        done
        install -d -o mysql -g mysql /run/mysqld
        setsid --fork setpriv --reuid=mysql --regid=mysql --init-groups mariadbd >>/var/log/mariadb.log 2>&1 </dev/null
        wait_until mariadb-admin ping
        ;;
    "stop mariadb")
        server=$(cat /run/mysqld/mysqld.pid)
        kill "$server"
        wait_until is_gone "$server"
        ;;
    "start evenkeel-"*) run_unit "$2" ;;
    "enable --now evenkeel-"*.timer) SYSTEMD_OFFLINE=1 /usr/bin/systemctl --quiet enable "$3" ;;
    "enable evenkeel-"*) SYSTEMD_OFFLINE=1 /usr/bin/systemctl --quiet enable "$2" ;;
    *)
        echo "systemctl $*: not in this house" >&2
        exit 1
        ;;
esac
