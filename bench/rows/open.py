"""From a file to the first result, in a process that has everything loaded but the model: networks of the family beside."""

from rows.networks import NAMES, SIZES, row

ROWS = [row("open", name, title) for name, title in zip(SIZES, NAMES)]
