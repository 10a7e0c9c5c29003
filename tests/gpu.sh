# SPDX-License-Identifier: LGPL-2.1-or-later
# Everything that only a GPU can tell: sh tests/gpu.sh [BUILD] [--seconds N] [--rehearse]
#
# Builds nothing: BUILD (build-test, or build) is what tests/run.sh or meson left.  The most telling questions come first
# and every line is complete when it is printed, so what is there when it is cut off is worth reading.  At the end one
# table and `N passed, N failed, N skipped`, also when it is interrupted.  Takes under five minutes; VIDGEN_GPU_LOG names
# a file that gets all of it.  Models that tests/run.sh has fetched are measured, too.
#
# --rehearse asks the stand-ins (tests/cuda) the same of small frames, to try this script without a GPU.
#
# onnxruntime-gpu is measured beside it where VIDGEN_PYTHON (or build-test/venv) has it, or where its wheel lies in
# VIDGEN_WHEELS (a folder).
set -u
cd "$(dirname "$0")/.." || exit 1
build= seconds=2 rehearse=no
compare_size='640 360' memory_size='1280 720' plan_size=1920x1080
sizes='640x360 1280x720 1920x1080'
while [ $# -gt 0 ]; do
    case $1 in
        --seconds) seconds=${2:?}; shift ;;
        --rehearse) rehearse=yes ;;
        -*) echo "usage: sh tests/gpu.sh [BUILD] [--seconds N] [--rehearse]" >&2; exit 2 ;;
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
kernels=$build/tests/cuda/gpu-kernels pictures=$build/tests/cuda/gpu-pictures products=$build/tests/cuda/gpu-dnn-run
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vidgen
models="pipelines/models/style3.onnx pipelines/models/upscale2x.onnx"
if [ $rehearse = yes ]; then
    VIDGEN_MODULE_PATH=$build/tests/cuda LD_LIBRARY_PATH=$build/tests/cuda/standin_cudnn
    kernels=$build/tests/cuda/test-cuda-kernels pictures=$build/tests/cuda/test-cuda-pictures
    products=$build/tests/cuda/test-dnn-run
    seconds=0 compare_size='40 24' memory_size='24 20' plan_size=64x40 sizes=24x20
    export LD_LIBRARY_PATH
else
    for model in "$cache/realesr-animevideov3-x2.onnx" "$cache/multistyle26.onnx"; do
        [ ! -f "$model" ] || models="$models $model"
    done
fi
: "${VIDGEN_MODULE_PATH:=$build/kernels/cuda}"
export VIDGEN_MODULE_PATH

say() { printf '%s\n' "$*" | tee -a "$log"; }

finish() {
    trap - INT TERM
    say "== table"
    { printf '%-24s %-10s %10s %12s %14s\n' model size "vidgen ms" "onnxrt ms" "device bytes"; cat "$table"; } | tee -a "$log"
    say "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
    exit
}
trap 'say "interrupted"; finish' INT TERM

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

# $models are paths without spaces, sizes are two words: both are meant to be split.
# shellcheck disable=SC2086
{
say "== numbers"
for model in $models; do
    try "compare/$(basename "$model" .onnx)" 60 "$build/tests/cuda/gpu" compare "$model" $compare_size
done
try products 60 "$products"
try kernels 60 env VIDGEN_CUDNN=no "$kernels" 1
try pictures 30 env VIDGEN_CUDNN=no "$pictures" 1

say "== memory"
for model in $models; do
    try "memory/$(basename "$model" .onnx)" 60 "$build/tests/cuda/gpu" memory "$model" $memory_size 20
done

say "== plans: by the device, and by its description"
cat >"$build/gpu-same-plan.sh" <<'SCRIPT'
set -e
vidgen=$1 model=$2 size=$3 work=$4
for device in cuda "$work/gpu-device.json"; do
    "$vidgen" plan --only --json --max-device-memory 4G --size "$size" --device "$device" "$model" |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["plan"]["bytes"]["arena"])'
done | xargs sh -c 'echo "planned by the device $0, by its description $1"; [ "$0" = "$1" ]'
SCRIPT
for model in $models; do
    try "plan/$(basename "$model" .onnx)" 30 sh "$build/gpu-same-plan.sh" "$build/pipelines/vidgen" "$model" $plan_size "$build"
done
}

say "== time"
python=${VIDGEN_PYTHON:-$build/venv/bin/python}
if [ -n "${VIDGEN_WHEELS:-}" ] && [ ! -x "$build/gpu-venv/bin/python" ]; then
    python3 -m venv --system-site-packages "$build/gpu-venv" && "$build/gpu-venv/bin/python" -m pip install -q --no-index \
        --find-links "$VIDGEN_WHEELS" onnxruntime-gpu numpy >>"$log" 2>&1
fi
[ -x "$build/gpu-venv/bin/python" ] && python=$build/gpu-venv/bin/python
[ -x "$python" ] || python=python3
median() { sed -n 's/.*median \([0-9.]*\) ms.*/\1/p' "$build/gpu.out" | tail -n 1; }
for size in $sizes; do
    for model in $models; do
        short=$(basename "$model" .onnx) pixels=$(echo "$size" | tr x ' ')
        # shellcheck disable=SC2086
        try "time/$short/$size" 30 "$build/tests/cuda/gpu" time "$model" $pixels "$seconds"
        ours=$(median)
        bytes=$(sed -n 's/.*; \([0-9]*\) bytes$/\1/p' "$build/gpu.out")
        # shellcheck disable=SC2086
        try "onnxruntime/$short/$size" 30 "$python" tests/cuda/gpu_ort.py "$model" $pixels "$seconds"
        theirs=$(median)
        printf '%-24s %-10s %10s %12s %14s\n' "$short" "$size" "${ours:--}" "${theirs:--}" "${bytes:--}" >>"$table"
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

finish
