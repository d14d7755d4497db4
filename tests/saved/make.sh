#!/usr/bin/env bash
# Makes the folders of a version, with that version installed, into a folder named after it:
#     tests/saved/make.sh
# Runs end as if killed after the checkpoint of update 4 (of 6), so that every later version can also resume them.
set -euo pipefail
cd "$(dirname "$0")"
version=$(python -c 'import gym_dr; print(gym_dr.__version__)')
[ ! -e "$version" ] || { echo "$version exists"; exit 1; }
mkdir "$version"
cd "$version"

small="--updates 6 --checkpoint-every 2 --num-envs 2 --eval-episodes 3"
networks="--hidden-sizes 8"

gymdr train a2c --run-dir a2c $small $networks --rollout-steps 64 --critic-context
gymdr evaluate a2c --sobol 4 --corners --grid wind_power=0:20:2 --episodes 2
# wind_power without its switch: before 0.3 no wind blew
gymdr train a2c --run-dir a2c_windless $small $networks --rollout-steps 64 --randomize wind_power=uniform:0:20 --context observation
gymdr train a2c --run-dir a2c_delayed $small $networks --rollout-steps 64 --randomize action_delay=integer:0:3 --resample-every 1
gymdr train a2c --run-dir a2c_stock $small $networks --rollout-steps 64 --env CartPole-v1 --randomization none
gymdr train ppo --run-dir ppo $small $networks --rollout-steps 64 --minibatches 2 --epochs 2 --env gym_dr/HopperDR-v5 --randomization wide
gymdr train ppo --run-dir ppo_memory $small $networks --rollout-steps 64 --minibatches 2 --epochs 2 --memory gru --memory-size 8 --sequence-length 16
gymdr train reinforce --run-dir reinforce $small --env gym_dr/InvertedPendulumDR-v5
for sampler in adr doraemon spdl; do
  gymdr train a2c --run-dir $sampler $small $networks --rollout-steps 256 --randomization wide --sampler $sampler --cohort 4 --success -300
done
gymdr train a2c --run-dir seeds $small $networks --rollout-steps 64 --seeds 1,2
cat > study.toml << 'STUDY'
algorithm = "a2c"
seeds = [1, 2]

[settings]
num_envs = 2

[a2c]
updates = 2
rollout_steps = 64
hidden_sizes = [8]

[variants.nominal]
randomization = "none"

[variants.wide]
randomization = "wide"

[evaluation]
episodes = 2
grid = { gravity = [-11, -5, 2] }
STUDY
gymdr study study.toml --output study
rm study/report.html

for run in a2c_* ppo ppo_memory reinforce adr doraemon spdl; do
  rm -r "$run"/checkpoints/*6.safetensors "$run"/training.png "$run"/sampler.png "$run"/evaluation 2> /dev/null || true
done
find . -name .lock -delete
find . -name '*.png' -exec truncate -s 0 {} +  # that there is one shows that the run is finished
