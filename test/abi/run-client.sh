#!/bin/sh
# run-client.sh COMPILE PREFIX SOURCE PROGRAM BUNDLE HASH LEVEL...: compiles a client (CLIENT in the command stands for its
# source), runs it at each level with 1, 2 and 7 threads; every run must print the hash.
set -eu
compile=$1 prefix=$2 source=$3 program=$4 bundle=$5 hash=$6
shift 6
$(echo "$compile" | sed "s|CLIENT|$source|") -o "$program"
for level in "$@"; do
  for threads in 1 2 7; do
    got=$($prefix "$program" "$bundle" $threads "$level")
    echo "$threads threads, $level: $got"
    [ "${got%% *}" = "$hash" ] || { echo "expected the hash $hash" >&2; exit 1; }
  done
done
