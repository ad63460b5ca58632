#!/bin/sh
# check-abi.sh SNAPSHOT LIBRARY WORK: the library has the ABI of the snapshot, functions added since apart; and the comparison
# notices a removed function and a field of another type, or it would prove nothing.
set -eu
snapshot=$1 library=$2 altered=$3/altered.abi
abidiff --no-added-syms "$snapshot" "$library"

notices() {
  if cmp -s "$altered" "$snapshot"; then echo "the alteration '$1' changes nothing" >&2; exit 1; fi
  if abidiff --no-added-syms "$altered" "$library" >/dev/null; then echo "abidiff does not notice $1" >&2; exit 1; fi
}
sed 's/astra_stream_mark/astra_stream_gone/g' "$snapshot" >"$altered"
notices "a removed function"
wide=$(sed -n "s/.*typedef-decl name='uint64_t'.* id='\([^']*\)'.*/\1/p" "$snapshot")
sed "s/name='num_inputs' type-id='[^']*'/name='num_inputs' type-id='$wide'/" "$snapshot" >"$altered"
notices "a field of another type"
