"""Wrong kernels: the sentence, the line and the column of each."""

import inspect
import re

import numpy as np
import pytest
import wrong_kernels

import astra


@pytest.mark.parametrize("row", wrong_kernels.WRONG, ids=lambda row: row[0].__name__)
def test_a_wrong_kernel_is_refused_with_its_line(row):
    f, sentence, at, given = row
    call = {"out": astra.spec((8,)), "grid": 1, **given}
    with pytest.raises(astra.ArgumentError) as caught:
        astra.kernel(f)(wrong_kernels.X, **call)
    text = str(caught.value)
    if not at:
        assert text == sentence
        return
    found = re.fullmatch(r"(.*):(\d+):(\d+): error: (.*)\n    (.*)\n    ( *)\^", text)
    assert found is not None, text
    file, line, column, said, shown, spaces = found.groups()
    sentence = re.sub(r"\{(-?\d+)\}", lambda n: str(int(line) + int(n[1])), sentence)  # a line beside the one that is marked
    assert said == sentence
    assert file == inspect.getsourcefile(f)
    lines, first = inspect.getsourcelines(f)
    marked = [first + i for i, text in enumerate(lines) if "# here" in text]
    assert not marked or marked == [int(line)]
    assert shown[int(column) - 1 :].startswith(at) and len(spaces) == int(column) - 1


def test_there_are_enough_of_them():
    names = [f.__name__ for f, *_ in wrong_kernels.WRONG]
    assert len(names) == len(set(names)) >= 60


def test_primitives_are_called_in_kernels_alone():
    with pytest.raises(astra.ArgumentError, match="astra.kernel.load is called in a kernel"):
        astra.kernel.load(wrong_kernels.X, (0,), (8,))
    with pytest.raises(astra.ArgumentError, match="stands above a function"):
        astra.kernel(3)
    with pytest.raises(astra.ArgumentError, match="is a helper"):
        wrong_kernels.twice(1)


SCATTERED = """module @m {
  func @f[i in 0..3](%x : f32[16], %k : i64[16]) {
    %at = shrink %k [i*AT] [4]
    %a = shrink %x [i*4] [4]
    %y = STORE
    return %y
  }
  entry @main(%x : f32[16], %k : i64[16]) -> (%y : f32[16]) {
    %c = custom(@f) %x, %k [4] names=i
    %y = proj %c index=0
  }
}
"""


def test_races_of_the_text_form(tmp_path):
    path = tmp_path / "m.uop"
    path.write_text(SCATTERED.replace("AT", "4").replace("STORE", "place %a [i*3] [16] value=0.0"))
    with pytest.raises(astra.Error, match=r"at custom \(line 9\): programs \(0\) and \(1\) both store element \(3\) of result 0"):
        astra.compile_file(path, "native")
    path.write_text(SCATTERED.replace("AT", "4").replace("STORE", "scatter %x, %at, %a axis=0 kind=set"))
    with pytest.warns(UserWarning, match=r"m.uop: at custom \(line 9\): that no two programs store one element of result 0 is not shown"):
        program = astra.compile_file(path, "native")
    x = np.arange(16, dtype=np.float32)
    assert program(x, np.arange(16)[::-1].copy()).tolist() == x[::-1].tolist()
