"""OpenVINO: the latency hint, f32 where the CPU's features would have it take bf16, inputs shared, one request."""

import openvino


class Peer:
    def __init__(self, threads):
        self.threads = threads

    def load(self, row, case, path):
        settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": self.threads}
        self.request = openvino.Core().compile_model(path, "CPU", settings).create_infer_request()
        self.inputs = case.inputs  # the tensors borrow their memory
        for name, value in case.inputs.items():
            self.request.set_tensor(name, openvino.Tensor(value, shared_memory=True))
        self.run = self.request.infer
        self.run()

    def outputs(self):
        return [tensor.data.copy() for tensor in self.request.output_tensors]
