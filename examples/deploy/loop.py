"""Runs an exported policy at its fixed rate: python loop.py policy.onnx [STEPS]. Needs numpy and onnxruntime only."""

import sys
import time

import numpy as np
import onnxruntime

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1  # small networks are fastest on one core
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
sizes = {one.name: one.shape[1:] for one in session.get_inputs()}
period = float(session.get_modelmeta().custom_metadata_map["time_step_seconds"])
feed = {"state": np.zeros((1, *sizes.get("state", (0,))), np.float32), "episode_start": np.ones(1, bool)}
latencies, missed, due = [], 0, time.perf_counter()
for _ in range(int((sys.argv[2:] or [500])[0])):
    begun = time.perf_counter()
    feed["observation"] = np.zeros((1, *sizes["observation"]), np.float32)  # read your sensors here
    action, *state = session.run(["action", "next_state"][: len(sizes)], {name: feed[name] for name in sizes})
    command = action[0]  # give this to your motors
    feed |= {"state": state[0] if state else feed["state"], "episode_start": np.zeros(1, bool)}
    latencies.append(time.perf_counter() - begun)
    due += period
    missed += time.perf_counter() > due
    due = max(due, time.perf_counter())  # after a missed deadline, go on from now
    time.sleep(max(0.0, due - time.perf_counter()))
mean, late = 1e6 * np.mean(latencies), 1e6 * np.quantile(latencies, 0.99)
print(f"{len(latencies)} steps of {1e3 * period:g} ms: {mean:.0f} us, 99 % below {late:.0f} us, {missed} missed")
