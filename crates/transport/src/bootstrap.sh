umask 077
own="evenkeel-$(id -u)"
here=
for place in "$TMPDIR" /var/tmp /tmp "$HOME"; do
    [ -n "$place" ] || continue
    dir="$place/$own"
    mkdir "$dir" 2>/dev/null
    [ -d "$dir" ] && [ ! -L "$dir" ] && [ -O "$dir" ] && chmod 700 "$dir" || continue
    probe="$dir/probe.$$"
    printf "#!/bin/sh\nexit 0\n" >"$probe" && chmod 700 "$probe" && "$probe" 2>/dev/null && here=$dir
    rm -f "$probe"
    [ -z "$here" ] || break
    rmdir "$dir" 2>/dev/null
done
[ -n "$here" ] || { echo "evenkeel:there is no directory that programs can be run from ($place and others were tried)"; exit 1; }
program="$here/program-@HASH@"
hash() { sha256sum <"$1" 2>/dev/null | cut -c 1-64; }
if [ "$(hash "$program")" = "@HASH@" ]; then
    echo "evenkeel:have"
else
    echo "evenkeel:need"
    head -c @SIZE@ >"$program.$$"
    if [ "$(hash "$program.$$")" != "@HASH@" ]; then
        rm -f "$program.$$"
        rmdir "$here" 2>/dev/null
        exit 1
    fi
    chmod 700 "$program.$$" && mv "$program.$$" "$program"
fi
exec @SUDO@ "$program" helper attach "$here" @ARGUMENTS@
