"""OpenVINO with a model that it compiled before, from the folder of its cache."""

import shutil
from pathlib import Path

from peers import openvino


class Peer(openvino.Peer):
    def build(self, row, case, path):
        shutil.rmtree(self.folder(path), ignore_errors=True)
        self.compiled(path)
        return path

    @staticmethod
    def folder(path):
        return Path(path).parent / "openvino"  # of one model at a time

    def compiled(self, path):
        self.settings["CACHE_DIR"] = str(self.folder(path))
        return super().compiled(path)

    def outputs(self):
        if not self.request.get_compiled_model().get_property("LOADED_FROM_CACHE"):
            raise RuntimeError("it does not take the model from its cache")
        return super().outputs()
