"""The yardstick beside job_benchmark: PyTorch's eager x + y on 16 floats and its matmul, on the same machine. Needs python3-torch."""

import time

import torch


def best(f, rounds=200, inner=1000):
    f()
    t = 1e9
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(inner):
            f()
        t = min(t, (time.perf_counter() - start) / inner)
    return t


x, y = torch.rand(16), torch.rand(16)
with torch.no_grad():
    print("x + y, 16 floats: %.0f ns" % (1e9 * best(lambda: x + y)))
z = torch.rand(16, requires_grad=True)
print("x + y, 16 floats, with gradient: %.0f ns" % (1e9 * best(lambda: z + y)))
with torch.no_grad():
    for n in 256, 1024:
        a, b = torch.rand(n, n), torch.rand(n, n)
        t = best(lambda: a @ b, 20, 10 if n == 256 else 2)
        print("matmul %d: %.1f GFLOP/s (%d threads)" % (n, 2 * n**3 / t / 1e9, torch.get_num_threads()))
