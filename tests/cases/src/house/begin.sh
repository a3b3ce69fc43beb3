# The first process of a house: has $1 build it, in the control group $2, and waits. When its standard input ends it
# ends, and with it all in the house. The other arguments are those of $1.
set -eu
build=$1 group=$2
shift 2
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
    # Where none can be made, the house does with the one that it is in.
    if [ -e "$hierarchy/cgroup.procs" ] && mkdir "$hierarchy/$group" 2>/dev/null; then
        # 0 is whoever writes it.
        echo 0 >"$hierarchy/$group/cgroup.procs"
    fi
done
unshare --pid --cgroup --fork bash -c "$build" house "$@" </dev/null &
exec >/dev/null
# A shell reaps the children of others as well.
read -r _ || true
