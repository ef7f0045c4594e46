# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Every function that the HIP runtime looks up is one that AMD's library exports.

    exports.py LIBRARY HIP_DRIVER_DEF
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

library, definitions = sys.argv[1:]
wanted = set(re.findall(r"^HIP_[A-Z]+\(\w+, (\w+)", Path(definitions).read_text(), re.MULTILINE))
names = subprocess.run(
    ["nm", "--dynamic", "--defined-only", library], check=True, capture_output=True, text=True
).stdout
exported = {line.split()[-1].partition("@")[0] for line in names.splitlines()}
missing = sorted(wanted - exported)
print(f"{len(wanted)} functions, not in {library}: {', '.join(missing) or 'none'}")
sys.exit(1 if missing or not wanted else 0)
