"""Turns logs of https://github.com/Rhoban/bam into those of gymdr fit: a file for each motion.

    python read.py FOLDER OUTPUT

FOLDER has their JSON files. Angles are read and speeds are left out: the servo computes them from angles.
"""

import json
import sys
from pathlib import Path

import numpy as np

source, output = map(Path, sys.argv[1:])
output.mkdir(parents=True, exist_ok=True)
for path in sorted(source.glob("*.json")):
    log = json.loads(path.read_text())
    column = {name: np.array([row[name] for row in log["entries"]], float) for name in log["entries"][0]}
    unknown = np.full(len(column["position"]), np.nan)
    np.savez(
        output / f"{path.stem}.npz",
        time=column["timestamp"],
        observations=np.column_stack([column["position"], unknown]),
        actions=column["goal_position"][:-1, None],
        **{"params/kp": log["kp"], "params/volts": column["input_volts"], "params/enabled": column["torque_enable"]},
    )
print(f"Wrote {len(list(output.glob('*.npz')))} motions to {output}")
