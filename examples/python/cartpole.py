"""CartPole by policy gradients: a pole on a cart is kept upright (gymnasium's CartPole-v1).

Takes:    nothing; pip install astra-compiler gymnasium matplotlib.
Gives:    the mean return of 100 episodes, cartpole.astra (the policy as a bundle, for Python, C and C++), cartpole.svg.
How:      proximal policy optimization (Schulman et al., arXiv 1707.06347): one program acts, one trains; both are compiled once.

    python examples/python/cartpole.py [FOLDER]
"""

import pathlib
import sys

import gymnasium
import numpy as np

import astra
from astra import nn, optim

STEPS, ENVS, EPOCHS, BATCH, UPDATES = 128, 16, 8, 256, 80
DISCOUNT, SMOOTH, CLIP = 0.99, 0.95, 0.2


class Policy(nn.Module):
    """Scores of the two actions, and what return is expected."""

    def __init__(self):
        self.scores = nn.Sequential(nn.Linear(4, 64), astra.tanh, nn.Linear(64, 64), astra.tanh, nn.Linear(64, 2))
        self.value = nn.Sequential(nn.Linear(4, 64), astra.tanh, nn.Linear(64, 64), astra.tanh, nn.Linear(64, 1))

    def __call__(self, x):
        return self.scores(x), self.value(x)[:, 0] * 100


def loss_of(policy, seen, action, old, advantage, wanted):
    scores, value = policy(seen)
    logs = astra.log_softmax(scores)
    chosen = astra.take_along_axis(logs, action.reshape(-1, 1), axis=1)[:, 0]
    ratio = astra.exp(chosen - old)
    gain = astra.minimum(ratio * advantage, astra.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage)
    entropy = -(astra.exp(logs) * logs).sum(axis=1)
    return (0.5e-4 * (value - wanted) * (value - wanted) - gain - 0.01 * entropy).mean()


def main(folder):
    policy = Policy(seed=0)
    optimizer = optim.chain(optim.clip_by_global_norm(0.5), optim.adam(lr=1e-3, schedule=astra.schedules.linear(steps=UPDATES * EPOCHS * STEPS * ENVS // BATCH)))
    state = optimizer.init(policy)

    @astra.jit
    def act(policy, seen):
        scores, value = policy(seen)
        return astra.log_softmax(scores), value

    @astra.jit
    def train(policy, state, *batch):
        loss, gradient = astra.value_and_grad(loss_of)(policy, *batch)
        policy, state = optimizer.step(policy, gradient, state)
        return policy, state, loss

    rng = np.random.default_rng(0)
    envs = [gymnasium.make("CartPole-v1") for _ in range(ENVS)]
    seen = np.stack([env.reset(seed=i)[0] for i, env in enumerate(envs)])
    returns, sums, curve = [], np.zeros(ENVS), []
    for update in range(UPDATES):
        rows = []
        for _ in range(STEPS):
            logs, value = (t.numpy() for t in act(policy, seen))
            action = (rng.random(ENVS) < np.exp(logs[:, 1])).astype(np.int64)
            reward, end, following = np.ones(ENVS, np.float32), np.zeros(ENVS, np.float32), []
            for i, env in enumerate(envs):
                after, _, over, cut, _ = env.step(int(action[i]))
                sums[i] += 1
                if over or cut:
                    if cut:  # the time is over, not the balance: the return goes on
                        reward[i] += DISCOUNT * act(policy, np.tile(after, (ENVS, 1)))[1].numpy()[0]
                    returns.append(sums[i])
                    sums[i], end[i], after = 0, 1, env.reset()[0]
                following.append(after)
            rows.append((seen, action, logs[np.arange(ENVS), action], value, reward, end))
            seen = np.stack(following)
        seens, actions, olds, values, rewards, ends = (np.stack(x) for x in zip(*rows))
        # Advantages, from the last step to the first (arXiv 1506.02438).
        after, running, advantages = act(policy, seen)[1].numpy(), np.zeros(ENVS, np.float32), np.zeros_like(values)
        for t in reversed(range(STEPS)):
            error = rewards[t] + DISCOUNT * after * (1 - ends[t]) - values[t]
            running = error + DISCOUNT * SMOOTH * (1 - ends[t]) * running
            advantages[t], after = running, values[t]
        flat = [x.reshape(STEPS * ENVS, *x.shape[2:]) for x in (seens, actions, olds, advantages, advantages + values)]
        for epoch in range(EPOCHS):
            order = rng.permutation(STEPS * ENVS)
            for rows in order.reshape(-1, BATCH):
                b = [x[rows] for x in flat]
                b[3] = (b[3] - b[3].mean()) / (b[3].std() + 1e-8)
                policy, state, _ = train(policy, state, *b)
        curve.append(np.mean(returns[-100:]))
        print(f"update {update + 1}, {(update + 1) * STEPS * ENVS} steps, mean return of the last 100 episodes {curve[-1]:.1f}", flush=True)

    # 100 episodes by the better action.
    total = []
    for episode in range(100):
        seen, sum_, over = envs[0].reset(seed=1000 + episode)[0], 0, False
        while not over:
            scores = act(policy, np.tile(seen, (ENVS, 1)))[0].numpy()[0]
            seen, _, ended, cut, _ = envs[0].step(int(scores.argmax()))
            sum_, over = sum_ + 1, ended or cut
        total.append(sum_)
    print(f"mean return of 100 episodes: {np.mean(total):.1f}")

    n = astra.dim("batch", 1, 64)
    astra.trace(lambda seen: policy(seen)[0], astra.spec((n, 4))).lower().compile().save(folder / "cartpole.astra")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    axes.plot((np.arange(len(curve)) + 1) * STEPS * ENVS, curve)
    axes.set_xlabel("steps of the environment")
    axes.set_ylabel("mean return of 100 episodes")
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(folder / "cartpole.svg")
    return float(np.mean(total))


if __name__ == "__main__":
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    out.mkdir(parents=True, exist_ok=True)
    if main(out) < 475:
        sys.exit("the pole fell too early: a mean return of 475 was wanted")
