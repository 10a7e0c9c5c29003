#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# The kernels for aarch64: cross-compiled, and their tests run in an emulator.
#
#     sh tests/cross.sh [BUILD-DIRECTORY]
#
# Exit status 77: compiler or emulator cannot be had.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-build-aarch64}
. pipelines/install.sh

has_tools() {
    command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64 >/dev/null
}
# In a shell of its own: a skip, not the end, when there is no network.
has_tools || (install_packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
if ! has_tools; then
    echo "no gcc-aarch64-linux-gnu or no qemu-user"
    exit 77
fi
[ ! -f "$build/build.ninja" ] || set -- --reconfigure
[ "${1:-}" = --reconfigure ] || set --
meson setup --werror --buildtype=debugoptimized --cross-file tests/cross/aarch64.ini -Dgst=disabled "$@" "$build" &&
    ninja -C "$build" && meson test -C "$build" --no-rebuild --suite kernels -t 10 --print-errorlogs
