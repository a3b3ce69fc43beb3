# Makes a house out of the filesystem that is mounted at $1, calls it $2, moves in, and becomes its systemd. The other
# arguments are files and directories of this host that are to be seen in the house too, at the same place or elsewhere
# (PATH=PLACE).
set -eu
root=$1 name=$2
shift 2

# With this host's processes still in view.
read -r pid _ </proc/self/stat

mount --make-rprivate /
cd "$root"
mkdir -p .old .layers proc sys dev run root tmp var/tmp var/lib var/log var/backups backup srv mnt home
chmod 1777 tmp var/tmp
chmod 700 root .layers
for link in bin sbin lib lib32 lib64 libx32; do
    if [ -L "/$link" ]; then
        cp -P "/$link" "$link"
    fi
done
# What this host has installed, under a layer that takes what is written.
for layer in usr etc; do
    mkdir -p "$layer" ".layers/$layer/upper" ".layers/$layer/work"
    mount -t overlay "$layer" -o "lowerdir=/$layer,upperdir=$root/.layers/$layer/upper,workdir=$root/.layers/$layer/work" "$layer"
done
for seen in "$@"; do
    from=${seen%%=*} to=${seen#*=}
    if [ -d "$from" ]; then
        mkdir -p ".$to"
    else
        mkdir -p ".${to%/*}"
        : >".$to"
    fi
    mount -o bind,ro "$from" ".$to"
done
mount -t proc proc proc
mount --rbind /sys sys
# This house's control groups are below one of its own.
if [ -e /sys/fs/cgroup/cgroup.procs ]; then
    mount -t cgroup2 cgroup2 sys/fs/cgroup
else
    mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
    mkdir sys/fs/cgroup/unified sys/fs/cgroup/systemd
    mount -t cgroup2 cgroup2 sys/fs/cgroup/unified
    mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
fi
mount -t tmpfs -o mode=755 run run
mount -t tmpfs -o mode=755 dev dev
mkdir dev/pts dev/shm
for device in null zero full random urandom tty fuse kvm loop-control loop[0-9]*; do
    for file in /dev/$device; do
        if [ -e "$file" ]; then
            cp -a "$file" dev/
        fi
    done
done
# The next free one may have a number that this host has not needed yet.
for number in {0..63}; do
    [ -e "dev/loop$number" ] || mknod -m 660 "dev/loop$number" b 7 "$number"
done
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
mount -t tmpfs shm dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for stream in 0:stdin 1:stdout 2:stderr; do
    ln -s "/proc/self/fd/${stream%:*}" "dev/${stream#*:}"
done
pivot_root . .old
cd /
# Whatever else is mounted on this host is none of the house's.
umount -l /.old
hostname "$name"
echo "$name" >/etc/hostname
cat >/etc/hosts <<HOSTS
127.0.0.1 localhost db1 kvm1 vault shop.example blog.example
127.0.0.2 db2
127.0.0.3 db3
HOSTS
ip link set lo up

# What this host starts at boot is none of the house's: a journal, and the directories of packages.
units=/usr/lib/systemd/system
rm -rf $units/*.target.wants /etc/systemd/system/*.wants /usr/lib/systemd/system-generators /etc/machine-id
mkdir $units/sysinit.target.wants
ln -s ../systemd-journald.service ../systemd-tmpfiles-setup.service $units/sysinit.target.wants/
systemd-machine-id-setup >/dev/null 2>&1
mkdir -p /var/log/journal
ln -s /run /var/run
echo "$pid"
exec env -i container=house PATH="$PATH" /usr/lib/systemd/systemd --system --unit=multi-user.target \
    --log-target=journal --show-status=no >/dev/null 2>&1
