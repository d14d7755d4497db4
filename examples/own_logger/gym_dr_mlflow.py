"""Runs in MLflow: gymdr train ppo --log mlflow"""

from gym_dr.plugins.hookspecs import hookimpl
from gym_dr.runs.loggers import Logger


class MlflowWriter:
    def __init__(self, path, config):
        import mlflow  # only when it is used

        self.client, kept = mlflow.MlflowClient(), path / "id.txt"  # removed with the run, as its points should be
        self.run = kept.read_text() if kept.exists() else self.client.create_run("0").info.run_id
        kept.write_text(self.run)
        self.last_step = max((p.step for p in self.client.get_metric_history(self.run, "step")), default=-1)
        self.client.log_dict(self.run, config, "config.json")

    def write(self, step, scalars, histograms):  # MLflow has no histograms
        for name, value in {**scalars, **{n: v.mean() for n, v in histograms.items()}, "step": step}.items():
            self.client.log_metric(self.run, name.replace(":", "."), value, step=step)

    def results(self, step, values):
        self.client.log_dict(self.run, values, "evaluation.json")

    def close(self):
        self.client.set_terminated(self.run)


@hookimpl
def gym_dr_register_loggers(register):
    register(Logger(name="mlflow", summary="MLflow.", open="gym_dr_mlflow:MlflowWriter", module="mlflow"))
