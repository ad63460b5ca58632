#!/bin/sh
# check-ops.sh RUNTIME OPS BUNDLE: what libastra_ops promises about itself. Exit code 1 and a sentence if it does not hold.
set -eu
fail() { echo "$2: $1" >&2; exit 1; }
runtime=$1 ops=$2 bundle=$3

needed=$(readelf -dW "$ops" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for n in $needed; do
  case $n in libastra_rt.so.1 | libc.so.6 | ld-linux-*) ;; *) fail "it needs $n; the runtime, libc and the loader are allowed" "$ops" ;; esac
done
exported=$(nm -D --defined-only "$ops" | awk '{ print $3 }' | grep -vE '^astra_ops_[a-z]+@@ASTRA_OPS_1\.0$|^ASTRA_OPS_1\.0' || true)
[ -z "$exported" ] || fail "it exports: $exported" "$ops"

stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
all=$(stat -c %s "$bundle")
for library in "$runtime" "$ops"; do
  strip -o "$stripped" "$library"
  all=$((all + $(stat -c %s "$stripped")))
done
[ "$all" -lt 3000000 ] || fail "with the libraries, stripped, it has $all bytes; 3000000 are allowed" "$bundle"
echo "$bundle: $all bytes with the libraries, stripped, needs: $(echo $needed)"
