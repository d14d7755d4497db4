"""The memory of a policy within an episode: a gated recurrent unit, in torch.

The unit reads the observation and the previous action. The network gets the observation and the unit's state.
``compiled/gru.py`` has the compiled version for small networks on the CPU.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

PLAIN: dict[str, Any] = {"dtype": torch.float32, "device": "cpu"}  # tensors, whatever defaults the user has set
LONGEST = 63.0  # most steps that an untrained unit remembers, so that it can learn long dependencies


class GRUMemory(nn.Module):
    """A gated recurrent unit (Cho et al. 2014) whose state is cleared where an episode starts.

    Attributes:
        size: H, the numbers in a state.
    """

    def __init__(self, inputs: int, size: int, init: str) -> None:
        """Builds a unit for inputs ``(..., inputs)``.

        ``init`` is "orthogonal"; any other text means torch's default. An orthogonal unit's memory fades over 1 to
        ``LONGEST`` steps at first (Tallec and Ollivier 2018, "Can recurrent neural networks warp time?", eq. 16): with
        half-open gates, an observation would be forgotten after a dozen steps, and nothing learned from it.
        """
        super().__init__()
        self.size = size
        self.unit = nn.GRUCell(inputs, size, **PLAIN)
        if init == "orthogonal":
            for weights in (self.unit.weight_ih, self.unit.weight_hh):
                for gate in weights.chunk(3):
                    nn.init.orthogonal_(gate)
            nn.init.zeros_(self.unit.bias_ih)
            nn.init.zeros_(self.unit.bias_hh)
            spans = torch.empty(size, **PLAIN).uniform_(1.0, LONGEST)
            with torch.no_grad():
                self.unit.bias_ih[size : 2 * size] = spans.log()

    def step(self, inputs: Tensor, state: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        """One step of N sub-environments.

        Args:
            inputs: Shape ``(N, inputs)``.
            state: Shape ``(N, H)``.
            starts: Whether an episode starts, before which the state is cleared, shape ``(N,)``.

        Returns:
            The states before and after the step.
        """
        before = state.masked_fill(starts[:, None], 0.0)  # even states that are not finite
        return before, self.unit(inputs, before)

    def forward(self, inputs: Tensor, first: Tensor, starts: Tensor) -> Tensor:
        """The states after each of L steps of S sequences, shape ``(L, S, H)``.

        Args:
            inputs: Shape ``(L, S, inputs)``.
            first: States before the first step, shape ``(S, H)``.
            starts: Whether an episode starts, before which the state is cleared, shape ``(L, S)``.
        """
        states = [first]
        for now, start in zip(inputs, starts, strict=True):
            states.append(self.step(now, states[-1], start)[1])
        return torch.stack(states[1:])
