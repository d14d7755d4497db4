"""An exported policy walks the Go1 in plain MuJoCo: python go1.py policy.onnx go1.xml [FORWARD LEFT TURN] [--view].

Needs numpy, mujoco and onnxruntime only. It computes observations and targets of the joints as the robot's own program
would; on the robot, replace what reads and writes ``data``.
"""

import argparse
import time

import mujoco
import numpy as np
import onnxruntime

STAND = np.array([0.1, 0.9, -1.8, -0.1, 0.9, -1.8] * 2)  # rad; hip, thigh and calf of FR, FL, RR and RL
REACH, TROT_HZ = 0.75, 2.5  # rad that an action of 1 moves a joint's target; steps of each foot in a second
RAMP = 2.0  # m/s and rad/s in a second, by which commands change
PHASES, FOLD = np.array([0.0, 0.5, 0.5, 0.0]), (0.0, 0.18, -0.36)  # of each leg, and what lifts its foot, rad


class Go1:
    """The robot, and what its program remembers."""

    def __init__(self, model: mujoco.MjModel, policy: str) -> None:
        """Stands."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # small networks are fastest on one core
        self.session = onnxruntime.InferenceSession(policy, options, providers=["CPUExecutionProvider"])
        self.period = float(self.session.get_modelmeta().custom_metadata_map["time_step_seconds"])
        self.model, self.data = model, mujoco.MjData(model)
        self.substeps = round(self.period / model.opt.timestep)
        mujoco.mj_resetDataKeyframe(model, self.data, 0)
        mujoco.mj_forward(model, self.data)
        self.command, self.clock, self.last_action = np.zeros(3), 0.0, np.zeros(12)

    def sensor(self, name: str) -> np.ndarray:
        """The numbers of a sensor."""
        return self.data.sensor(name).data

    def observe(self) -> np.ndarray:
        """What the policy sees, shape (50,)."""
        angle = 2.0 * np.pi * self.clock
        return np.concatenate(
            [
                self.data.qpos[7:] - STAND,  # encoders
                0.05 * self.data.qvel[6:],
                self.sensor("velocity"),  # an estimate on the robot, m/s
                0.25 * self.sensor("gyro"),  # rad/s
                self.sensor("up"),  # the world's vertical as the trunk sees it, from the accelerometer
                self.last_action,
                self.command,
                np.array([np.sin(angle), np.cos(angle)]) * self.command.any(),
            ]
        )

    def act(self) -> np.ndarray:
        """One step: returns the action, shape (12,)."""
        (actions,) = self.session.run(["action"], {"observation": self.observe()[None].astype(np.float32)})
        swing = np.maximum(np.sin(2.0 * np.pi * (self.clock + PHASES)), 0.0)
        self.data.ctrl[:] = STAND + REACH * actions[0] + np.kron(swing, FOLD)  # targets of the servos, rad
        mujoco.mj_step(self.model, self.data, self.substeps)
        self.last_action = actions[0]
        self.clock = (self.clock + TROT_HZ * self.period) % 1.0 * self.command.any()  # without a command it stands
        return actions[0]


def main() -> None:
    """Walks for ten seconds, and tells how well it followed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy")
    parser.add_argument("model")
    parser.add_argument("command", type=float, nargs="*", default=[0.8, 0.0, 0.0], help="m/s, m/s, rad/s")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--view", action="store_true", help="show it in MuJoCo's viewer")
    given = parser.parse_args()
    robot = Go1(mujoco.MjModel.from_xml_path(given.model), given.policy)
    ramp = RAMP * robot.period
    viewer = None
    if given.view:
        import mujoco.viewer as viewers

        viewer = viewers.launch_passive(robot.model, robot.data)
    followed, due = [], time.perf_counter()
    for _ in range(round(given.seconds / robot.period)):
        robot.command += np.clip(given.command - robot.command, -ramp, ramp)
        robot.act()
        followed.append([*robot.sensor("velocity")[:2], robot.sensor("gyro")[2]])
        if viewer is not None:
            viewer.sync()
            due += robot.period
            time.sleep(max(0.0, due - time.perf_counter()))
    means = np.mean(followed[len(followed) // 5 :], axis=0)
    upright = "stands" if robot.sensor("up")[2] > 0.5 else "has fallen"
    print(f"command {given.command}, mean velocity {means.round(2)} (m/s, m/s, rad/s); the robot {upright}")


if __name__ == "__main__":
    main()
