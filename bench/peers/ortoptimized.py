"""ONNX Runtime with a model that it optimized and whose weights it packed before: its offline mode."""

import shutil

import onnxruntime

from peers import ort

ENTRIES = {
    "session.optimized_model_external_initializers_file_name": "model.weights",
    "session.optimized_model_external_initializers_min_size_in_bytes": "1024",
    "session.save_external_prepacked_constant_initializers": "1",
}


class Peer(ort.Peer):
    def build(self, row, case, path):
        folder = path.parent / "ort"  # of one model at a time
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        options = super().options()
        options.optimized_model_filepath = str(folder / "model.onnx")
        for key, value in ENTRIES.items():
            options.add_session_config_entry(key, value)
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return folder / "model.onnx"

    def options(self):
        found = super().options()
        found.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        return found
