# SPDX-License-Identifier: BSD-3-Clause
"""A small GPT: blocks of attention and two linear layers over characters, in plain PyTorch. It knows nothing of ranks or checkpoints."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Block(nn.Module):
    """One layer: each position looks at those before it, then at itself."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, time, width) to the same."""
        batch, time, width = x.shape
        q, k, v = (part.view(batch, time, self.heads, width // self.heads).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, time, width)
        x = x + functional.dropout(self.out(seen), self.dropout, self.training)
        changed = self.down(functional.gelu(self.up(self.norm2(x))))
        return x + functional.dropout(changed, self.dropout, self.training)


class GPT(nn.Module):
    """Characters in, the loss of guessing each next one out."""

    def __init__(self, letters: int, length: int = 64, width: int = 64, layers: int = 2, heads: int = 4, dropout: float = 0.1) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters, bias=False)

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Numbers of characters, (batch, time) each, to the mean cross-entropy in nats."""
        x = self.letters(inputs) + self.places(torch.arange(inputs.shape[1], device=inputs.device))
        for block in self.blocks:
            x = block(x)
        return functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())
