"""Wrong kernels: the sentence, the line and the column of each."""

import inspect
import re

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
