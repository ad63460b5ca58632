"""The options of a Python tool as lines of fields, from which the build makes its man page and completion.

Takes:    an argparse parser.
Gives:    the lines that tools/astra-pages reads.
Keeps:    the parser as the only place where an option is written down.
Does not: need what the tool itself needs.
"""

import argparse

COMMON = ("help", "version")  # every tool has them


def table(parser, summary, operands):
    options = [a for a in parser._actions if a.option_strings and a.option_strings[-1].lstrip("-") not in COMMON]
    lines = [("name", parser.prog), ("synopsis", parser.usage.removeprefix(parser.prog).strip()), ("summary", summary),
             ("description", parser.description)]  # fmt: skip
    lines += [("operand", ending) for ending in operands]
    for a in options:
        flag = isinstance(a, argparse._StoreTrueAction)
        value = "" if flag else a.metavar or a.dest.upper()
        lines.append(("option", a.option_strings[-1].lstrip("-"), value, a.help, " ".join(a.choices or ())))
    examples = parser.epilog.partition("examples:\n")[2]
    lines += [("example", line) for line in examples.splitlines()]
    return "".join("\t".join(fields) + "\n" for fields in lines)
