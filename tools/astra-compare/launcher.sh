#!/bin/sh
# astra-compare: a zip archive of Python files follows these lines. It wants Python with onnx, onnxruntime and NumPy.
here=$(dirname "$(readlink -f "$0")")
python=${ASTRA_PYTHON:-}
for found in "$here/../venv/bin/python" "$here/../../venv/bin/python"; do
  if [ -z "$python" ] && [ -x "$found" ]; then python=$found; fi
done
exec "${python:-python3}" "$0" "$@"
