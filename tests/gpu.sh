# SPDX-License-Identifier: LGPL-2.1-or-later
# Everything that only a GPU can tell: sh tests/gpu.sh [BUILD] [--seconds N]
#
# Builds nothing: BUILD (build-test, or build) is what tests/run.sh or meson left.  The most telling questions come first and
# every line is complete when it is printed, so what is there when it is cut off is worth reading.  At the end one table
# and `N passed, N failed, N skipped`.  Takes under five minutes; VIDGEN_GPU_LOG names a file that gets all of it.
#
# onnxruntime-gpu is measured beside it where VIDGEN_PYTHON (or build-test/venv) has it, or where its wheel lies in
# VIDGEN_WHEELS (a folder).
set -u
cd "$(dirname "$0")/.." || exit 1
build= seconds=3
while [ $# -gt 0 ]; do
    case $1 in
        --seconds) seconds=${2:?}; shift ;;
        -*) echo "usage: sh tests/gpu.sh [BUILD] [--seconds N]" >&2; exit 2 ;;
        *) build=$1 ;;
    esac
    shift
done
[ -n "$build" ] || for d in build-test build; do [ -x "$d/tests/cuda/gpu" ] && { build=$d; break; }; done
if [ -z "$build" ] || [ ! -x "$build/tests/cuda/gpu" ]; then
    echo "No build with the CUDA module: meson setup build && ninja -C build, where nvcc is." >&2
    exit 2
fi
build=$(cd "$build" && pwd)
log=${VIDGEN_GPU_LOG:-$build/gpu.log}
: >"$log"
passed=0 failed=0 skipped=0
deadline=$(($(date +%s) + 285))
table=$build/gpu.table
: >"$table"
: "${VIDGEN_MODULE_PATH:=$build/kernels/cuda}"
export VIDGEN_MODULE_PATH

say() { printf '%s\n' "$*" | tee -a "$log"; }

# try NAME SECONDS COMMAND...: one line for the result, the last of what it printed.
try() {
    name=$1 limit=$2
    shift 2
    left=$((deadline - $(date +%s)))
    if [ $left -le 0 ]; then
        skipped=$((skipped + 1))
        say "skip $name: five minutes are over"
        return 77
    fi
    [ $left -gt "$limit" ] || limit=$left
    timeout "$limit" "$@" >"$build/gpu.out" 2>&1
    status=$?
    last=$(tail -n 1 "$build/gpu.out")
    case $status in
        0) passed=$((passed + 1)); say "ok $name: $last" ;;
        77) skipped=$((skipped + 1)); say "skip $name: $last" ;;
        *) failed=$((failed + 1)); say "FAIL $name: status $status"; sed 's/^/    /' "$build/gpu.out" | tail -n 30 | tee -a "$log" ;;
    esac
    { echo "---- $name"; cat "$build/gpu.out"; } >>"$log"
    return $status
}

say "== device"
command -v nvidia-smi >/dev/null && nvidia-smi --format=csv,noheader \
    --query-gpu=name,compute_cap,driver_version,memory.total 2>&1 | tee -a "$log"
if ! try describe 60 "$build/tests/cuda/gpu" describe; then
    say "$passed passed, $failed failed, $skipped skipped: no GPU, or no cuDNN"
    [ "$failed" = 0 ] && exit 77
    exit 1
fi
cp "$build/gpu.out" "$build/gpu-device.json"
say "   (kept in $build/gpu-device.json; vidgen plan --device takes it, kernels/cuda/dnn_devices.c could have it)"

say "== numbers"
for model in style3 upscale2x; do
    try "compare/$model" 60 "$build/tests/cuda/gpu" compare "pipelines/models/$model.onnx" 640 360
done
try products 100 "$build/tests/cuda/gpu-dnn-run"

say "== memory"
for model in style3 upscale2x; do
    try "memory/$model" 60 "$build/tests/cuda/gpu" memory "pipelines/models/$model.onnx" 1280 720 20
done

say "== plans: by the device, and by its description"
same_plan() {
    "$build/pipelines/vidgen" plan --only --json --max-device-memory 4G --size "$2" --device cuda "$1" >"$build/gpu.plan1" || return
    "$build/pipelines/vidgen" plan --only --json --max-device-memory 4G --size "$2" --device "$build/gpu-device.json" "$1" \
        >"$build/gpu.plan2" || return
    python3 - "$build/gpu.plan1" "$build/gpu.plan2" <<'PYTHON'
import json, sys
a, b = (json.load(open(p))["plan"]["bytes"] for p in sys.argv[1:])
print("planned by the device", a["arena"], "by its description", b["arena"])
sys.exit(a != b)
PYTHON
}
for model in style3 upscale2x; do
    name=$model
    same_plan "pipelines/models/$model.onnx" 1920x1080 >"$build/gpu.same" 2>&1
    try "plan/$name" 60 sh -c "tail -n 1 '$build/gpu.same'; exit $?"
done

say "== time"
python=${VIDGEN_PYTHON:-$build/venv/bin/python}
if [ -n "${VIDGEN_WHEELS:-}" ] && [ ! -x "$build/gpu-venv/bin/python" ]; then
    python3 -m venv --system-site-packages "$build/gpu-venv" && "$build/gpu-venv/bin/python" -m pip install -q --no-index \
        --find-links "$VIDGEN_WHEELS" onnxruntime-gpu numpy >>"$log" 2>&1
fi
[ -x "$build/gpu-venv/bin/python" ] && python=$build/gpu-venv/bin/python
[ -x "$python" ] || python=python3
median() { sed -n 's/.*median \([0-9.]*\) ms.*/\1/p' "$build/gpu.out" | tail -n 1; }
for model in style3 upscale2x; do
    for size in "640 360" "1280 720" "1920 1080"; do
        # shellcheck disable=SC2086
        try "time/$model/$size" 60 "$build/tests/cuda/gpu" time "pipelines/models/$model.onnx" $size "$seconds"
        ours=$(median)
        bytes=$(sed -n 's/.*; \([0-9]*\) bytes$/\1/p' "$build/gpu.out")
        # shellcheck disable=SC2086
        try "onnxruntime/$model/$size" 60 "$python" tests/cuda/gpu_ort.py "pipelines/models/$model.onnx" $size "$seconds"
        theirs=$(median)
        printf '%-10s %-10s %10s %12s %14s\n' "$model" "$(echo "$size" | tr ' ' x)" "${ours:--}" "${theirs:--}" \
            "${bytes:--}" >>"$table"
    done
done

say "== sanitizer"
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
if [ -n "$sanitizer" ]; then
    for tool in memcheck racecheck; do
        try "sanitizer/$tool" 100 "$sanitizer" --tool $tool --error-exitcode 1 "$build/tests/cuda/gpu" memory \
            pipelines/models/style3.onnx 160 96 2
    done
else
    say "skip sanitizer: no compute-sanitizer"
    skipped=$((skipped + 1))
fi

say "== table"
{ printf '%-10s %-10s %10s %12s %14s\n' model size "vidgen ms" "onnxrt ms" "device bytes"; cat "$table"; } | tee -a "$log"
say "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
