# SPDX-License-Identifier: LGPL-2.1-or-later
"""onnxruntime-gpu's time for a model, host to host, as `gpu time` measures ours: one line.

    gpu_ort.py MODEL WIDTH HEIGHT SECONDS
"""
import sys
import time


def main():
    path, width, height, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    try:
        import numpy as np
        import onnxruntime as ort
    except ImportError as e:
        print("skipped: no onnxruntime here:", e)
        return 77
    if "CUDAExecutionProvider" not in ort.get_available_providers():
        print("skipped: this onnxruntime has no CUDA provider")
        return 77
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=["CUDAExecutionProvider"])
    if session.get_providers()[0] != "CUDAExecutionProvider":
        print("skipped: its CUDA provider does not start")
        return 77
    rng = np.random.default_rng(1)
    feeds = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else {2: height, 3: width}.get(k, 1) for k, d in enumerate(i.shape)]
        kind = np.float16 if i.type == "tensor(float16)" else np.float32
        feeds[i.name] = rng.random(shape).astype(kind)
    start = time.perf_counter()
    session.run(None, feeds)
    first = time.perf_counter() - start
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        session.run(None, feeds)
        times.append(1000 * (time.perf_counter() - start))
    times.sort()
    n = len(times)
    print(f"time: median {times[n // 2]:.3f} ms, least {times[0]:.3f}, 95 % {times[n * 19 // 20]:.3f}, {n} frames; "
          f"first {first:.2f} s; onnxruntime {ort.__version__}, f32 as the file is")
    return 0


sys.exit(main())
