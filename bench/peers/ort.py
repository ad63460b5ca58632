"""ONNX Runtime: all optimizations, inputs and outputs bound once."""

import onnxruntime


class Peer:
    def __init__(self, threads):
        self.threads = threads

    def options(self):
        found = onnxruntime.SessionOptions()
        found.intra_op_num_threads, found.inter_op_num_threads = self.threads, 1
        return found

    def load(self, row, case, path):
        self.session = onnxruntime.InferenceSession(path, self.options(), providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.inputs = {name: onnxruntime.OrtValue.ortvalue_from_numpy(value) for name, value in case.inputs.items()}
        for name, value in self.inputs.items():
            self.binding.bind_ortvalue_input(name, value)
        for output in self.session.get_outputs():
            self.binding.bind_output(output.name)
        self.session.run_with_iobinding(self.binding)
        self.results = self.binding.get_outputs()
        self.binding.clear_binding_outputs()
        for output, value in zip(self.session.get_outputs(), self.results):
            self.binding.bind_ortvalue_output(output.name, value)
        self.run = lambda run=self.session.run_with_iobinding, binding=self.binding: run(binding)

    def outputs(self):
        return [value.numpy() for value in self.results]
