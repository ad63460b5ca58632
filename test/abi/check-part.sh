#!/bin/sh
# check-part.sh LIBRARY NAMES VERSION: what a library beside libastra_rt promises about itself: what it needs, and that it
# exports astra_NAMES_... of a version alone. Exit code 1 and a sentence if it does not hold.
set -eu
fail() { echo "$library: $1" >&2; exit 1; }
library=$1 names=$2 version=$3

needed=$(readelf -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for n in $needed; do
  case $n in libastra_rt.so.1 | libc.so.6 | ld-linux-*) ;; *) fail "it needs $n; the runtime, libc and the loader are allowed" ;; esac
done
exported=$(nm -D --defined-only "$library" | awk '{ print $3 }' | grep -vE "^astra_($names)_[a-z_]+@@$version\$|^$version" || true)
[ -z "$exported" ] || fail "it exports: $exported"
echo "$library: $(stat -c %s "$library") bytes, needs: $(echo $needed)"
