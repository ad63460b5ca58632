#!/bin/sh
# usage: examples/digits_train/run.sh [FOLDER]
#
# Trains the digits network from random weights, with astra-train and with a C program, and holds both to the same bytes:
# the weights that this folder names (weights.sha256), and the picture of the loss (curve.svg). Half a minute, most of it
# the compiler. FOLDER is where files go; build/digits_train if not given. Build first: scripts/build.
set -eu
cd "$(dirname "$0")/../.."
here=examples/digits_train bin=build/bin out=${1:-build/digits_train}
mkdir -p "$out"
rm -f "$out/weights.safetensors" "$out/run.csv"
fail() { echo "digits_train: $*" >&2; exit 1; }

$bin/astra-compile $here/digits.onnx --dim batch=1..64 -o "$out/digits.astra" -j 2 --train --loss=cross_entropy \
  --optimizer='adamw(lr=1e-2, weight_decay=0.01)' --schedule='cosine(steps=900, warmup=45)'
$bin/astra-train "$out/digits.astra" --epochs 20 --batch 32 --seed 1 --out "$out/weights.safetensors" --log "$out/run.csv" \
  --data image=$here/train_images.npy,target=$here/train_labels.npy \
  --eval image=$here/heldout_images.npy,target=$here/heldout_labels.npy | tail -1

# The last row of the log is what eval says after the last epoch.
tail -1 "$out/run.csv" | awk -F, '$6 < 0.975 { exit 1 }' || fail "the accuracy is below 97.5 %"
(cd "$out" && sha256sum --quiet -c "$OLDPWD/$here/weights.sha256") || fail "the weights have other bytes"
python3 $here/curve.py "$out/run.csv" "$out/curve.svg"
cmp "$out/curve.svg" $here/curve.svg || fail "the picture of the loss is another one"

# The C program prints the hash of the weights alone: in the file they follow 8 bytes and a header of that length.
header=$(od -An -t u8 -N 8 "$out/weights.safetensors" | tr -d ' ')
expected=$(tail -c +$((header + 9)) "$out/weights.safetensors" | sha256sum | cut -d' ' -f1)
$bin/digits_train "$out/digits.astra" $here/train_images.npy $here/train_labels.npy $here/heldout_images.npy \
  $here/heldout_labels.npy --epochs 20 --batch 32 --seed 1 --threads 3 | tee "$out/digits_train.txt" | tail -1
tail -1 "$out/digits_train.txt" | grep -q "weights $expected" || fail "the C program's weights are not astra-train's"

# The same in two processes: the second goes on with the states that the first has saved. astra-run reads them too.
half() {
  $bin/digits_train "$out/digits.astra" $here/train_images.npy $here/train_labels.npy $here/heldout_images.npy \
    $here/heldout_labels.npy --batch 32 --seed 1 "$@"
}
half --epochs 10 --save "$out/half.safetensors" >/dev/null
half --load "$out/half.safetensors" --first-epoch 11 --epochs 20 --save "$out/whole.safetensors" | tail -1 |
  grep -q "weights $expected" || fail "in two processes the weights are others"
half --load "$out/weights.safetensors" --epochs 0 | grep -q "weights $expected" || fail "astra-train's weights are not loaded"
head -c 1000 "$out/half.safetensors" >"$out/short.safetensors"
half --load "$out/short.safetensors" --epochs 0 2>/dev/null && fail "states of a file that was cut are taken"
rm "$out/short.safetensors"

# The trained model, as a bundle for inference: its weights are packed, and nothing of training is in it.
$bin/astra-compile $here/digits.onnx --dim batch=1..360 -o "$out/trained.astra" -j 2 --weights "$out/weights.safetensors"
$bin/astra-run "$out/trained.astra" --input image=$here/heldout_images.npy
