"""Runs in MLflow: gymdr train ppo --log mlflow"""

from gym_dr.plugins.hookspecs import hookimpl
from gym_dr.runs.loggers import Logger


class MlflowWriter:
    def __init__(self, path, config):
        import mlflow  # only when a run logs to it

        self.mlflow, client, kept = mlflow, mlflow.MlflowClient(), path / "id.txt"  # gym_dr removes these `files`
        self.run = kept.read_text() if kept.exists() else client.create_run("0").info.run_id
        kept.write_text(self.run)
        client.log_dict(self.run, config, "config.json")

    def write(self, step, scalars, histograms):
        # MLflow has no histograms, so it gets their means; one call sends all numbers of a step or none
        shown = {**scalars, **{name: values.mean() for name, values in histograms.items()}, "step": step}
        self.mlflow.log_metrics({n.replace(":", "."): v for n, v in shown.items()}, step, run_id=self.run)

    def results(self, step, values):
        self.mlflow.log_dict(values, "evaluation.json", run_id=self.run)

    def close(self):
        self.mlflow.MlflowClient().set_terminated(self.run)


@hookimpl
def gym_dr_register_loggers(register):
    register(
        Logger(name="mlflow", summary="MLflow.", open="gym_dr_mlflow:MlflowWriter", module="mlflow", files="id.txt")
    )
