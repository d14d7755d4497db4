"""Runs in Weights & Biases: gymdr train ppo --log wandb"""

from gym_dr.plugins.hookspecs import hookimpl
from gym_dr.runs.loggers import Logger


class WandbWriter:
    def __init__(self, path, config):
        import wandb  # only when a run logs to it

        kept = path / "id.txt"  # gym_dr removes these `files`, so a run that replaces this one gets a new id
        known = {"id": kept.read_text()} if kept.exists() else {}
        self.run = wandb.init(project="gym_dr", resume="allow", config=config, dir=path, **known)
        kept.write_text(self.run.id)
        self.histogram = wandb.Histogram

    def write(self, step, scalars, histograms):
        self.run.log({**scalars, **{n: self.histogram(v) for n, v in histograms.items()}}, step=step)

    def results(self, step, values):
        self.run.summary.update(values)

    def close(self):
        self.run.finish()


@hookimpl
def gym_dr_register_loggers(register):
    wandb = {"module": "wandb", "install": "pip install wandb", "files": "id.txt"}
    register(Logger(name="wandb", summary="Weights & Biases.", open="gym_dr_wandb:WandbWriter", **wandb))
