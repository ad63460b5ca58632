"""OpenVINO: the latency hint, f32 where the CPU's features would have it take bf16, inputs shared, one request."""

import openvino


class Peer:
    def __init__(self, threads):
        self.settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}
        self.core = openvino.Core()
        self.core.get_property("CPU", "FULL_DEVICE_NAME")  # loads the device's library

    def compiled(self, path):
        return self.core.compile_model(path, "CPU", self.settings)

    def load(self, row, case, path):
        self.request = self.compiled(path).create_infer_request()
        self.inputs = case.inputs  # the tensors borrow their memory
        for name, value in case.inputs.items():
            self.request.set_tensor(name, openvino.Tensor(value, shared_memory=True))
        self.run = self.request.infer
        self.run()

    def outputs(self):
        return [tensor.data.copy() for tensor in self.request.output_tensors]
