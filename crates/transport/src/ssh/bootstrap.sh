umask 077
# Who asked may be gone: what was made here is removed all the same.
trap "" PIPE
me=$(id -u)
say() { printf "evenkeel:%s\n" "$*"; }
look() { LC_ALL=C stat -c "$1" "$2" 2>/dev/null; }

# Whether only root and this user decide what a path leads to: whatever it leads through is theirs, and closed to
# others or, as /tmp is, such that others leave alone what is not theirs. From above: what was looked at stays.
closed() {
    at=
    rest=${1#/}/
    while :; do
        set -- $(look "%u %a %F" "${at:-/}")
        [ "$1" = 0 ] || [ "$1" = "$me" ] || return 1
        case "$2 $3" in
        *" symbolic" | [1357]???" directory") ;;
        *[2367]" "* | *[2367]?" "*) return 1 ;;
        *" directory") ;;
        *) return 1 ;;
        esac
        [ "$rest" != / ] && [ -n "$rest" ] || return 0
        at="$at/${rest%%/*}"
        rest=${rest#*/}
    done
}

# Makes the directory $1 if need be, and sees whether it is ours alone and programs can be run from it: then it is
# $dir, else $why says why not.
own() {
    dir=
    why="$1 cannot be made"
    above=$(cd -P "${1%/*}/" 2>/dev/null && pwd -P) || return 1
    why="others can change what is at $1"
    closed "${1%/*}" && closed "$above" || return 1
    above="${above%/}/${1##*/}"
    mkdir "$above" 2>/dev/null
    case "$(look "%u %F %a" "$above")" in
    "") why="$1 cannot be made"; return 1 ;;
    "$me directory "*[2367] | "$me directory "*[2367]?) why="others can write to $1"; return 1 ;;
    "$me directory "*) ;;
    *) why="$1 is not a directory of this user"; return 1 ;;
    esac
    why="programs cannot be run from $1"
    probe="$above/probe.$$"
    if ! { chmod 700 "$above" && printf "#!/bin/sh\nexit 0\n" >"$probe" && chmod 700 "$probe"; } 2>/dev/null; then
        why="$1 cannot be written to"
    elif "$probe" 2>/dev/null; then
        dir=$above
    fi
    rm -f "$probe" 2>/dev/null
    [ -n "$dir" ] || { rmdir "$above" 2>/dev/null; return 1; }
}

# Whether the file $1 is the program: one file of ours that others cannot write to, by what is open, and its hash.
proven() {
    form="%F %u %a %h %d:%i"
    is=$(look "$form" "$1")
    case "$is" in
    "regular file $me 700 1 "*) ;;
    *) return 1 ;;
    esac
    { command exec 3<"$1"; } 2>/dev/null || return 1
    opened=$(LC_ALL=C stat -L -c "$form" /proc/self/fd/3 2>/dev/null)
    hash=$(sha256sum <&3 | cut -c 1-64)
    exec 3<&-
    [ "$opened" = "$is" ] && [ "$hash" = "@HASH@" ]
}

# Takes the program into the directory $1, as $new. All that is sent is read, whatever happens.
take() {
    new="$1/program-@HASH@.$$"
    if command -v gzip >/dev/null 2>&1; then
        say need packed
        read -r size
        head -c "$size" | { gzip -dc >"$new"; cat >/dev/null; }
    else
        say need
        head -c @SIZE@ | { cat >"$new"; cat >/dev/null; }
    fi
    chmod 700 "$new" 2>/dev/null && proven "$new" && return 0
    rm -f "$new"
    return 1
}

if [ -n "@MACHINE@" ] && [ "$(uname -m)" != "@MACHINE@" ]; then
    say "cannot run it was built for @MACHINE@, and that host is $(uname -m)"
    exit 1
fi
here=
for place in "$TMPDIR" /var/tmp /tmp "$HOME"; do
    case "$place" in
    /*) own "$place/evenkeel-$me" && here=$dir && break ;;
    esac
done
[ -n "$here" ] || { say "there is no directory that programs can be run from ($why; others were tried)"; exit 1; }
keep=
cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
case "$cache" in
/*) ;;
*) cache=/nonexistent ;;
esac
if [ -n "@KEEP@" ]; then
    [ -d "$cache" ] || { closed "${cache%/*}" && mkdir "$cache" 2>/dev/null; }
    own "$cache/evenkeel" && keep=$dir
elif closed "$cache/evenkeel"; then
    # What an earlier run kept there.
    rm -f "$cache"/evenkeel/program-* 2>/dev/null
    rmdir "$cache/evenkeel" 2>/dev/null
fi
program=
for place in "$keep" "$here"; do
    [ -n "$place" ] || continue
    program="$place/program-@HASH@"
    proven "$program" && say have && break
    [ ! -d "$program" ] || rm -rf "$program"
    program=
    take "$place" || { why="$place has no room for it"; continue; }
    # The loader says what is missing.
    if ! said=$("$new" --version 2>&1 </dev/null); then
        rm -f "$new"
        rmdir "$here" 2>/dev/null
        set -f
        say cannot run $said
        exit 1
    fi
    program="$place/program-@HASH@"
    if ! { mv -f "$new" "$program" && proven "$program"; }; then
        why="something else is at $program"
        rm -f "$new"
        program=
        continue
    fi
    [ "$place" != "$keep" ] || say "kept $keep"
    break
done
if [ -z "$program" ]; then
    rmdir "$here" 2>/dev/null
    say "the program could not be written: $why"
    exit 1
fi
if [ "$place" = "$keep" ]; then
    # The one before is for whoever still has it; no more than that stay.
    touch "$program"
    nth=0
    ls -t "$keep" | while read -r name; do
        case "$name" in
        program-*.*) [ -d "/proc/${name##*.}" ] || rm -f "$keep/$name" ;;
        program-*) nth=$((nth + 1)); [ "$nth" -le 2 ] || rm -f "$keep/$name" ;;
        esac
    done
elif [ -n "@KEEP@" ]; then
    say "unkept $why"
fi
exec @SUDO@ "$program" helper attach "$here" @ARGUMENTS@
