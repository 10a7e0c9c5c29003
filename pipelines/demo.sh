# SPDX-License-Identifier: LGPL-2.1-or-later
# From nothing to a stylised film: installs what is missing, builds into build/, takes a clip, runs vidgen over it.
#
#     sh pipelines/demo.sh [INPUT] [OUTPUT] [--model style3|upscale2x|multistyle26|FILE] [--style PLACE:WEIGHT,...]
#
#     sh pipelines/demo.sh                                          a clip of Big Buck Bunny -> vidgen-demo.mp4
#     sh pipelines/demo.sh holiday.mp4 painted.mp4 --style 1:1      the second of style3's three styles
#     sh pipelines/demo.sh --model multistyle26 --style 3:0.5,12:0.5
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
. "$here/install.sh"

usage() {
    say "demo.sh: $1"
    sed -n '4p' "$0" | sed 's/^# *//' >&2
    exit 2
}

input='' output='' model=style3 style=''
while [ $# -gt 0 ]; do
    case $1 in
        --model=*) model=${1#*=} ;;
        --style=*) style=${1#*=} ;;
        --model | --style)
            [ $# -gt 1 ] || usage "$1 needs a value"
            if [ "$1" = --model ]; then model=$2; else style=$2; fi
            shift
            ;;
        -*) usage "unknown option $1" ;;
        *)
            if [ -z "$input" ]; then input=$1
            elif [ -z "$output" ]; then output=$1
            else usage "what is $1?"
            fi
            ;;
    esac
    shift
done
overwrite=
[ -n "$output" ] || overwrite=-y output=vidgen-demo.mp4
if [ -n "$input" ] && [ ! -f "$input" ]; then
    say "demo.sh: there is no file $input"
    exit 1
fi

# shellcheck disable=SC2086
install_packages $BUILD_PACKAGES $RUN_PACKAGES

say "Building into $root/build"
if [ ! -f "$root/build/build.ninja" ]; then
    meson setup --buildtype=release "$root/build" "$root" >"$root/demo-build.log" 2>&1 ||
        { cat "$root/demo-build.log" >&2; exit 1; }
    rm "$root/demo-build.log"
fi
ninja -C "$root/build" >"$root/build/demo.log" 2>&1 || { cat "$root/build/demo.log" >&2; exit 1; }
export GST_PLUGIN_PATH="$root/build/gst${GST_PLUGIN_PATH:+:$GST_PLUGIN_PATH}" VIDGEN_MODEL_PATH="$here/models"

if [ -z "$input" ]; then
    if fetch_clip; then
        input=$CACHE/bigbuckbunny.mp4
        say "Clip: $input, (c) Blender Foundation, CC BY 3.0"
    else
        say "No clip to be had; a test picture with a tone takes its place."
        mkdir -p "$CACHE"
        input=$CACHE/testpicture.mp4
        gst-launch-1.0 -q -e videotestsrc pattern=ball num-buffers=125 ! \
            video/x-raw,format=I420,width=640,height=360,framerate=25/1 ! x264enc ! queue ! mp4mux name=mux ! \
            filesink location="$input" \
            audiotestsrc num-buffers=250 samplesperbuffer=960 volume=0.2 ! audio/x-raw,rate=48000,channels=2 ! \
            audioconvert ! avenc_aac ! aacparse ! queue ! mux. </dev/null
    fi
fi

case $model in
    style3 | upscale2x) file=$here/models/$model.onnx ;;
    multistyle26)
        fetch_multistyle26 || { say "Without the network there are style3 and upscale2x."; exit 1; }
        file=$CACHE/multistyle26.onnx
        ;;
    *)
        file=$model
        [ -f "$file" ] || { say "demo.sh: no model $file (known by name: style3, upscale2x, multistyle26)"; exit 1; }
        ;;
esac

say "Running $model over $input"
set -- "$input" -o "$output" -m "$file" $overwrite
[ -z "$style" ] || set -- "$@" -p "style_weights=$style"
exec "$root/build/pipelines/vidgen" "$@"
