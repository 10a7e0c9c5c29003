#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Fuzzes a target with clang's libFuzzer, from the corpus: sh tests/fuzz/fuzz.sh [onnx|modelinfo] [seconds] [options]
# New inputs gather in build-fuzz/corpus-TARGET; what breaks something is build-fuzz/crash-*, timeout-*, oom-*: mend it,
# and put the file into tests/fuzz/corpus/TARGET.
set -eu
cd "$(dirname "$0")/../.."
target=${1:-onnx} seconds=${2:-300} out=build-fuzz
[ $# -lt 2 ] || shift
[ $# -lt 1 ] || shift
mkdir -p "$out/corpus-$target"
protoc-c --proto_path=model --c_out="$out" model/onnx.proto
${CC:-clang} -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -D_GNU_SOURCE -I. -I"$out" \
  -o "$out/fuzz-$target" tests/fuzz/fuzz_"$target".c model/arena.c model/graph.c model/modelinfo.c model/onnx.c \
  model/onnx_data.c model/onnx_names.c kernels/base.c kernels/tensor.c "$out/onnx.pb-c.c" -lprotobuf-c -lm
exec "$out/fuzz-$target" -max_total_time="$seconds" -max_len=8192 -timeout=10 -rss_limit_mb=2048 \
  -artifact_prefix="$out/" "$@" "$out/corpus-$target" "tests/fuzz/corpus/$target"
