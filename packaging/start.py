# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What Python runs in an installed PREFIX/share/accord/python: finds the packages that the command needs.

Written for older Pythons too: they have to read it to say that they are too old.
"""

import os
import sys

OLDEST_TYPER = (0, 12)
HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.join(os.path.dirname(HERE), "packages")  # those that came with the installation


def give_up(problem, remedy):
    sys.stderr.write(
        "accord: {} {}; {}, or name another Python: ACCORD_PYTHON=/path/to/python3\n".format(
            sys.executable, problem, remedy
        )
    )
    sys.exit(2)


def typer_version():
    from importlib.metadata import version

    return tuple(int(number) for number in version("typer").split(".")[:2])


def start():
    if sys.version_info < (3, 10):
        give_up("is Python {}.{}".format(*sys.version_info[:2]), "Accord needs 3.10 or newer")
    if os.path.isdir(PACKAGES):
        sys.path.insert(0, PACKAGES)
    if HERE not in sys.path:
        sys.path.insert(0, HERE)
    remedy = "install it: {} -m pip install 'typer>=0.15.4' 'rich>=13'".format(sys.executable)
    try:
        if typer_version() < OLDEST_TYPER:
            give_up("has an older typer than {}.{}".format(*OLDEST_TYPER), remedy)
        from accord.cli import main
    except ImportError as error:  # PackageNotFoundError, too
        name = error.name or "typer"
        if name.startswith("accord"):
            raise
        give_up("has no " + name, remedy)
    main()


if __name__ == "__main__":
    start()
