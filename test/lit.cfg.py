"""lit tests of the compiler: .uop files whose first lines say how they are run.

    build/venv/bin/lit -sv --param build=$PWD/build test
    ... --param round-trip=1     every astra-opt prints the module and parses it again before and after its passes
"""
import os
import shutil
import subprocess

import lit.formats

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
build = os.path.abspath(lit_config.params.get("build", os.path.join(root, "build")))

config.name = "astra"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".uop", ".test"]
config.excludes = ["abi", "ranks", "unit", "e2e", "vectors", "golden", "Inputs"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = os.path.join(build, "test")
config.environment["PATH"] = os.path.join(build, "bin") + os.pathsep + os.environ["PATH"]
config.environment["LC_ALL"] = "C"



def llvm(tool):
    return shutil.which(tool + "-22") or os.path.join("/usr/lib/llvm-22/bin", tool)


again = " --round-trip" if lit_config.params.get("round-trip") else ""
config.substitutions += [
    (r"(?<![\w./-])astra-opt(?![\w/-])", os.path.join(build, "bin", "astra-opt") + again),
    (r"(?<![\w./-])FileCheck(?![\w/-])", llvm("FileCheck")),
    (r"(?<![\w./-])split-file(?![\w/-])", llvm("split-file")),
    (r"%build", build),
]
if shutil.which("ptxas") or os.path.exists("/usr/local/cuda/bin/ptxas"):
    config.available_features.add("ptxas")
if os.path.exists("/usr/bin/qemu-aarch64"):
    config.available_features.add("aarch64")
if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0:
    config.available_features.add("unshare")
