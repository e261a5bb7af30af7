#!/bin/sh
# Installs cairn from its archive, for one user or for all: no root, no packages.
#
#   sh install.sh [--prefix DIR] [--from URL] [ARCHIVE]    install, or replace another version
#   sh install.sh [--prefix DIR] --remove                  remove what was installed; data directories stay
#
# DIR is /usr/local for root and ~/.local for others. ARCHIVE is cairn-VERSION-linux-ARCH.tar.zst (or .tar.gz, for
# machines without zstd), beside this script unless it is named; its checksum has to be in the SHA256SUMS beside it.
# --from fetches both from a folder on a server.
set -eu

say() { echo "install.sh: $*"; }
fail() {
    say "$*" >&2
    exit 1
}
usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
    exit "$1"
}

self=$(cd "$(dirname "$0")" && pwd)
prefix='' archive='' from='' remove=''
while [ $# -gt 0 ]; do
    case $1 in
    --prefix) prefix=${2:?--prefix needs a folder} && shift ;;
    --prefix=*) prefix=${1#*=} ;;
    --from) from=${2:?--from needs a URL} && shift ;;
    --from=*) from=${1#*=} ;;
    --remove) remove=1 ;;
    -h | --help) usage 0 ;;
    -*) usage 2 >&2 ;;
    *) archive=$1 ;;
    esac
    shift
done
if [ -z "$prefix" ]; then
    # The copy that was installed knows where it is.
    if [ -e "$self/installed" ]; then
        prefix=$(cd "$self/../.." && pwd)
    elif [ "$(id -u)" = 0 ]; then
        prefix=/usr/local
    else
        prefix=${HOME:?there is no home folder; name one by --prefix}/.local
    fi
fi
case $prefix in /*) ;; *) prefix=$(pwd)/$prefix ;; esac
list=$prefix/lib/cairn/installed # one path below the prefix per line: every file that was installed

# Removes the files of a list, and the folders that are empty then.
remove_listed() { # list
    while read -r file; do
        rm -f "$prefix/$file"
        folder=$(dirname "$file")
        while [ "$folder" != . ] && rmdir "$prefix/$folder" 2>/dev/null; do folder=$(dirname "$folder"); done
    done <"$1"
}

if [ -n "$remove" ]; then
    [ -e "$list" ] || fail "nothing was installed below $prefix by this script"
    work=$(mktemp)
    trap 'rm -f "$work"' EXIT
    cp "$list" "$work"
    remove_listed "$work"
    rmdir "$prefix" 2>/dev/null || true
    say "removed $(wc -l <"$work" | tr -d ' ') files below $prefix; data directories are where they were"
    exit 0
fi

case $(uname -s)-$(uname -m) in
Linux-x86_64) arch=x64 ;;
Linux-aarch64) arch=arm64 ;;
*) fail "there is no archive for $(uname -s) on $(uname -m), only for Linux on x86_64 and aarch64" ;;
esac
packed=tar.gz
! command -v zstd >/dev/null 2>&1 || packed=tar.zst

mkdir -p "$prefix/lib/cairn" 2>/dev/null && [ -w "$prefix" ] || fail "$prefix cannot be written; --prefix names another folder"
work=$(mktemp -d "$prefix/.cairn-XXXXXX")
trap 'rm -rf "$work"; rmdir "$prefix/lib/cairn" "$prefix/lib" 2>/dev/null || true' EXIT

fetch() { # URL, file
    if command -v curl >/dev/null 2>&1; then
        curl -fsSL -o "$2" "$1"
    elif command -v wget >/dev/null 2>&1; then
        wget -q -O "$2" "$1"
    else
        fail "neither curl nor wget is here to fetch $1"
    fi
}
if [ -n "$from" ]; then
    fetch "${from%/}/SHA256SUMS" "$work/SHA256SUMS" || fail "${from%/}/SHA256SUMS cannot be fetched"
    name=$(sed -n "s/^[0-9a-f]*  \(cairn-.*-linux-$arch\.$packed\)\$/\1/p" "$work/SHA256SUMS" | head -n 1)
    [ -n "$name" ] || fail "$from has no archive for linux-$arch"
    say "fetching ${from%/}/$name"
    fetch "${from%/}/$name" "$work/$name" || fail "${from%/}/$name cannot be fetched"
    archive=$work/$name
elif [ -z "$archive" ]; then
    for each in "$self"/cairn-*-linux-"$arch"."$packed"; do [ ! -e "$each" ] || archive=$each; done
    [ -n "$archive" ] || fail "no cairn-VERSION-linux-$arch.$packed is beside this script; name one, or --from URL"
fi

name=$(basename "$archive")
sums=$(dirname "$archive")/SHA256SUMS
[ -e "$archive" ] || fail "$archive is not there"
[ -e "$sums" ] || fail "$sums is not there: it has the checksum of $name"
wanted=$(sed -n "s/^\([0-9a-f]*\)  $name\$/\1/p" "$sums")
[ -n "$wanted" ] || fail "$sums has no checksum of $name"
is=$(sha256sum <"$archive" | cut -d' ' -f1)
[ "$is" = "$wanted" ] || fail "$name is not the file that $sums names: its checksum is $is"
say "the checksum of $name is right"

mkdir "$work/tree"
case $name in
*.tar.zst) zstd -qdc "$archive" | tar -x -C "$work/tree" --strip-components=1 ;;
*) gzip -dc "$archive" | tar -x -C "$work/tree" --strip-components=1 ;;
esac
version=$("$work/tree/bin/cairn" version) || fail "the program does not run on this machine; nothing was changed"
(cd "$work/tree" && find . -type f -o -type l) | sed 's|^\./||' | sort >"$work/new"
echo lib/cairn/installed >>"$work/new"

# What another version had and this one has not.
if [ -e "$list" ]; then
    sort "$work/new" >"$work/sorted"
    sort "$list" | comm -23 - "$work/sorted" >"$work/old"
    remove_listed "$work/old"
fi
# Each file at once: a server that runs keeps what it has.
while read -r file; do
    [ "$file" != lib/cairn/installed ] || continue
    mkdir -p "$prefix/$(dirname "$file")"
    mv -f "$work/tree/$file" "$prefix/$file"
done <"$work/new"
mv -f "$work/new" "$list"

say "$version is $prefix/bin/cairn; $(wc -l <"$list" | tr -d ' ') files below $prefix, listed in $list"
case :$PATH: in *:"$prefix/bin":*) ;; *) say "$prefix/bin is not in PATH: export PATH=\"$prefix/bin:\$PATH\"" ;; esac
say "to remove it: sh $prefix/lib/cairn/install.sh --remove"
