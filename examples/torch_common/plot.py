# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Draws the time of each step from what `train.py --json FILE` has written, a curve for each backend.

python examples/torch_common/plot.py FILE PLOT.svg     (needs matplotlib)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for line in Path(sys.argv[1]).read_text().splitlines():
    record = json.loads(line)
    label = f"{record['app']}, {record['backend']}, {record['ranks']} ranks, {record['device']}"
    axes.plot([each / 1e3 for each in record["step_us"]], label=label, linewidth=1)
axes.set_xlabel("step")
axes.set_ylabel("ms a step")
axes.set_yscale("log")
axes.grid(visible=True, alpha=0.3)
axes.legend()
plt.rcParams["svg.hashsalt"] = "accord"  # the same picture from the same records
figure.savefig(sys.argv[2], metadata={"Date": None})
