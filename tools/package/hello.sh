#!/bin/sh
# hello.sh CAIRN: a new project, served and asked, in the folder hello; with the shell alone, where there is no curl.
set -eu
cairn=$(command -v "$1")
"$cairn" new hello >/dev/null
"$cairn" serve hello --listen 127.0.0.1:0 --admin off >log 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true; rm -f log' EXIT
until grep -q 'ready on' log; do
    kill -0 $server 2>/dev/null || { cat log >&2; exit 1; }
    sleep 0.1
done
port=$(sed -n 's/^cairn: ready on .*:\([0-9]*\)$/\1/p' log)
answer=$(bash -c "exec 3<>/dev/tcp/127.0.0.1/$port; printf 'GET / HTTP/1.0\r\n\r\n' >&3; cat <&3" | tail -n 1)
echo "the project answers: $answer"
[ "$answer" = "Hello, world!" ]
kill $server
wait $server || { cat log >&2; exit 1; }
