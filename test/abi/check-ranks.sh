#!/bin/sh
# check-ranks.sh LIBRARY: what libastra_ranks promises about itself. Exit code 1 and a sentence if it does not hold.
set -eu
fail() { echo "$library: $1" >&2; exit 1; }
library=$1

needed=$(readelf -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for n in $needed; do
  case $n in libastra_rt.so.1 | libc.so.6 | ld-linux-*) ;; *) fail "it needs $n; the runtime, libc and the loader are allowed" ;; esac
done
exported=$(nm -D --defined-only "$library" | awk '{ print $3 }' | grep -vE '^astra_(ranks|mesh|collective)_[a-z_]+@@ASTRA_RANKS_1\.0$|^ASTRA_RANKS_1\.0' || true)
[ -z "$exported" ] || fail "it exports: $exported"
echo "$library: $(stat -c %s "$library") bytes, needs: $(echo $needed)"
