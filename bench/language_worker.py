"""One engine with one language model, in a process of its own, that answers over a pipe.

Takes:    the name of an engine (ENGINES), a model's file, a number of threads; on stdin, one JSON object a line:
            {"do": "load"}                              loads the model and reads one token
            {"do": "prompt", "tokens": [...]}           reads them into an empty context
            {"do": "decode", "at": [...], "times": N}   N tokens, one by one, behind a context of those
            {"do": "logits", "tokens": [...], "file": FILE.npy}   the scores behind each token
            {"do": "memory"}                            the peak of resident memory, and what is resident now
Gives:    one JSON object a line: {"error": SENTENCE}, or the wall and CPU seconds of the work and nothing around it; of memory, MiB.
Keeps:    stdout for the answers. Packages are imported before the clock starts.
Does not: choose what is measured.
"""

import ctypes
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

CONTEXT = 2048  # tokens that every engine has room for


class Astra:
    """A bundle with a context of CONTEXT, one sequence (docs/language.md)."""

    def __init__(self, path, threads):
        import astra_rt

        self.rt, self.path, self.threads = astra_rt, path, threads

    def load(self):
        self.module = self.rt.load(self.path, threads=self.threads)
        self.session = self.module.session()
        self.chunk = self.session["prefill"].inputs[0].upper[1]
        return self.read([1])

    def keep(self, length):
        self.session["reset"]([length])

    def read(self, tokens):
        for i in range(0, len(tokens), self.chunk):
            part = np.array([tokens[i : i + self.chunk]], np.int32)
            logits, status = self.session["prefill"](part, [part.shape[1]])
            assert status.tolist() == [0]
        return logits.numpy()[0]

    def step(self, token):
        return self.session["decode"](np.array([token], np.int32))[0].numpy()[0]


class LlamaCpp:
    """llama.cpp by its C functions, with what it does by itself: a cache of f16, 512 tokens of a prompt at a time, repacked weights."""

    def __init__(self, path, threads):
        import llama_cpp

        self.c, self.path, self.threads = llama_cpp, path, threads
        llama_cpp.llama_backend_init()
        self.quiet = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(self.quiet, ctypes.c_void_p(0))

    def load(self):
        c = self.c
        options = c.llama_model_default_params()
        options.n_gpu_layers = 0
        self.model = c.llama_model_load_from_file(str(self.path).encode(), options)
        options = c.llama_context_default_params()
        options.n_ctx, options.n_batch, options.n_ubatch = CONTEXT, 512, 512
        options.n_threads = options.n_threads_batch = self.threads
        self.context = c.llama_init_from_model(self.model, options)
        self.vocabulary = c.llama_vocab_n_tokens(c.llama_model_get_vocab(self.model))
        return self.read([1])

    def keep(self, length):
        self.c.llama_memory_seq_rm(self.c.llama_get_memory(self.context), 0, length, -1)

    def read(self, tokens):
        for i in range(0, len(tokens), 512):
            part = (self.c.llama_token * len(tokens[i : i + 512]))(*tokens[i : i + 512])
            assert self.c.llama_decode(self.context, self.c.llama_batch_get_one(part, len(part))) == 0
        self.c.llama_synchronize(self.context)
        return np.ctypeslib.as_array(self.c.llama_get_logits_ith(self.context, -1), (self.vocabulary,))

    def step(self, token):
        return self.read([token])


class OnnxRuntime:
    """A model of bench/language_onnx.py: past and present share a buffer, as ONNX Runtime's own generator has it."""

    def __init__(self, path, threads):
        import onnxruntime

        self.rt, self.path, self.threads, self.length = onnxruntime, path, threads, 0

    def load(self):
        options = self.rt.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        self.session = self.rt.InferenceSession(str(self.path), options, providers=["CPUExecutionProvider"])
        shapes = {i.name: i.shape for i in self.session.get_inputs()}
        self.caches = {}
        for name, shape in shapes.items():
            if name.startswith("past."):
                self.caches[name] = self.rt.OrtValue.ortvalue_from_numpy(np.zeros((1, shape[1], CONTEXT, shape[3]), np.float32))
        return self.read([1])

    def keep(self, length):
        self.length = length

    def read(self, tokens):
        binding = self.session.io_binding()
        binding.bind_output("logits")
        self.length += len(tokens)
        for name, value in (("tokens", np.array([tokens], np.int64)), ("last", np.array([self.length - 1], np.int32)),
                            ("total", np.array(self.length, np.int32))):  # fmt: skip
            binding.bind_cpu_input(name, value)
        for name, value in self.caches.items():
            binding.bind_ortvalue_input(name, value)
            binding.bind_ortvalue_output(name.replace("past", "present"), value)
        self.session.run_with_iobinding(binding)
        return binding.get_outputs()[0].numpy()[0, -1]

    def step(self, token):
        return self.read([token])


class OpenVino:
    """The same model; the caches that it gives are those of the next call."""

    def __init__(self, path, threads):
        import openvino

        self.ov, self.path = openvino, path
        self.settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}

    def load(self):
        self.request = self.ov.Core().compile_model(str(self.path), "CPU", self.settings).create_infer_request()
        self.pasts = [i.get_any_name() for i in self.request.model_inputs if i.get_any_name().startswith("past.")]
        shape = self.request.get_compiled_model().input(self.pasts[0]).partial_shape
        self.empty = (1, shape[1].get_length(), 0, shape[3].get_length())
        self.keep(0)
        return self.read([1])

    def keep(self, length):
        caches = getattr(self, "caches", {})
        self.caches = {n: np.ascontiguousarray(caches[n][:, :, :length]) if length else np.zeros(self.empty, np.float32) for n in self.pasts}
        self.length = length

    def read(self, tokens):
        self.length += len(tokens)
        inputs = {"tokens": np.array([tokens], np.int64), "last": np.array([self.length - 1], np.int32),
                  "total": np.array(self.length, np.int32), **self.caches}  # fmt: skip
        self.request.infer({n: self.ov.Tensor(v, shared_memory=True) for n, v in inputs.items()})
        self.caches = {n: self.request.get_tensor(n.replace("past", "present")).data.copy() for n in self.pasts}
        return self.request.get_tensor("logits").data[0, -1]

    def step(self, token):
        return self.read([token])


ENGINES = {"astra": Astra, "llama.cpp": LlamaCpp, "onnxruntime": OnnxRuntime, "openvino": OpenVino}


class Worker:
    def __init__(self, engine):
        self.engine, self.context = engine, None

    def timed(self, work):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}

    def load(self):
        return self.timed(self.engine.load)

    def prompt(self, tokens):
        self.engine.keep(0)
        self.context = None
        return self.timed(lambda: self.engine.read(tokens))

    def decode(self, at, times):
        if self.context == at:
            self.engine.keep(len(at))
        else:
            self.engine.keep(0)
            self.engine.read(at)
            self.context = at
        token = at[-1]
        return self.timed(lambda: [self.engine.step(token) for _ in range(times)])

    def logits(self, tokens, file):
        self.engine.keep(0)
        self.context = None
        np.save(file, np.stack([self.engine.step(token).copy() for token in tokens]))
        return {}

    def memory(self):
        found = {}
        for line in Path("/proc/self/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in ("VmHWM", "RssAnon", "RssFile"):
                found[name] = int(value.split()[0]) / 1024
        return found


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    name, path, threads = sys.argv[1:]
    worker = Worker(ENGINES[name](Path(path), int(threads)))
    answers.write(json.dumps({"imported": worker.memory()}) + "\n")
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
