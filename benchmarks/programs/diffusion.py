"""A U-Net of diffusers, conditioned on text, learns to find noise as its training script has it;
the scheduler adds the noise.
"""

from __future__ import annotations

import torch
from diffusers import DDPMScheduler, UNet2DConditionModel
from steps import repeat

model = UNet2DConditionModel(
    block_out_channels=(160, 320, 640, 640), cross_attention_dim=768, sample_size=32
).cuda()
scheduler = DDPMScheduler(num_train_timesteps=1000)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)


def step() -> None:
    images, text = torch.randn(8, 4, 32, 32, device="cuda"), torch.randn(8, 77, 768, device="cuda")
    noise, times = torch.randn_like(images), torch.randint(1000, (8,), device="cuda")
    noised = scheduler.add_noise(images, noise, times)
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(noised, times, text).sample, noise).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


repeat(step, 4)
