# The first process of a house: makes it out of the filesystem that is mounted at $1, calls it $2, moves in, and reaps
# whoever ends there. The other arguments are files and directories of this host that are to be seen in the house too,
# at the same place or elsewhere (PATH=PLACE). When its standard input ends it ends, and with it all in the house.
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
cat >/etc/hosts <<HOSTS
127.0.0.1 localhost db1 kvm1 vault shop.example blog.example
127.0.0.2 db2
127.0.0.3 db3
HOSTS
ip link set lo up
echo "$pid"
# A shell reaps the children of others as well.
read -r _ || true
