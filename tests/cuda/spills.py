# SPDX-License-Identifier: LGPL-2.1-or-later
"""No kernel spills registers, on any capability that the module has code for: nvcc's own report of the build.

    spills.py NAME.usage ...

Exit status 1 when one does, 77 without reports (a build without nvcc)."""
import re
import sys

ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")


def main():
    if len(sys.argv) < 2:
        print("skipped: this build has no CUDA module (no nvcc)")
        return 77
    kernel, seen, spilled, most = None, {}, 0, (0, "none")
    for path in sys.argv[1:]:
        for line in open(path):
            if ENTRY.search(line):
                kernel = ENTRY.search(line).groups()
            elif FRAME.search(line) and kernel:
                stack, stores, loads = map(int, FRAME.search(line).groups())
                seen.setdefault(kernel[1], set()).add(kernel[0])
                if stores or loads:
                    print(f"FAIL: {kernel[0]} spills {stores} bytes on {kernel[1]} ({path})")
                    spilled += 1
            elif USED.search(line) and kernel:
                most = max(most, (int(USED.search(line).group(1)), " on ".join(kernel)))
                kernel = None
    for capability, kernels in sorted(seen.items()):
        print(f"{capability}: {len(kernels)} kernels")
    print(f"{spilled} spill; the most registers, {most[0]}: {most[1]}")
    # Each capability has every kernel: a report that was not understood would say nothing.
    complete = len({len(kernels) for kernels in seen.values()}) == 1 and min(map(len, seen.values())) >= 40
    return 1 if spilled or not complete else 0


sys.exit(main())
