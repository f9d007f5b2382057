"""What the programs of these tests begin with: a context, the kernels, and the address of a UM
block of an array.
"""

from __future__ import annotations

BLOCK = 2 << 20
TOUCH = f"""
    ctx = context()
    m = Module()
    BLOCK = {BLOCK}
    n = BLOCK // 4
    at = lambda p, block: int(p) + block * BLOCK
"""
