# SPDX-License-Identifier: LGPL-2.1-or-later
# The program vidgen: sh tests/cli.sh BUILD.  One line a test: `ok NAME`, `FAIL NAME: why`.
# The clips are made here, small, so that the model takes a second or so for each.
set -u
build=$(cd "$1" && pwd)
vidgen=$build/pipelines/vidgen
models=$(cd "$(dirname "$0")/../pipelines/models" && pwd)
export GST_PLUGIN_PATH="$build/gst" VIDGEN_MODEL_PATH="$models"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

clip() { # NAME WIDTH HEIGHT FRAMES AUDIO-ENCODER MUXER
    gst-launch-1.0 -q videotestsrc pattern=ball num-buffers="$4" ! "video/x-raw,width=$2,height=$3,framerate=25/1" ! \
        x264enc key-int-max=10 ! queue ! "$6" name=m ! filesink location="$1" \
        audiotestsrc num-buffers=$(($4 * 2)) samplesperbuffer=960 ! audio/x-raw,rate=48000,channels=2 ! \
        audioconvert ! $5 ! queue ! m. >log 2>&1 </dev/null || cat log
}

probe() { # FILE STREAM FIELD: one value a packet, sorted
    ffprobe -v error -select_streams "$2" -show_entries "packet=$3" -of csv=p=0 "$1" | tr -d , | sort -g
}
frames() { probe "$1" v:0 pts_time | wc -l; }
sound() { ffmpeg -v error -i "$1" -map 0:a -c copy -f md5 - 2>&1; }
size() { ffprobe -v error -select_streams v:0 -show_entries stream=width,height -of csv=p=0 "$1"; }

# go STATUS ARGUMENT...: runs vidgen, checks its exit status, keeps its output in out and err.
go() {
    want=$1
    shift
    status=0
    timeout 300 "$vidgen" "$@" >out 2>err </dev/null || status=$?
    [ "$status" = "$want" ] || { echo "exit status $status, expected $want: $(tail -n 3 err)"; return 1; }
}
fails() { # TEXT: the whole of stderr but for plan and notes is one line that has TEXT in it
    grep -q "$1" err || { echo "expected \"$1\" in: $(cat err)"; return 1; }
    [ "$(grep -c '^vidgen: ' err)" = 1 ] || { echo "not one line: $(cat err)"; return 1; }
}
same() { [ "$1" = "$2" ] || { echo "$3: expected '$1', got '$2'"; return 1; }; }

check() { # NAME FUNCTION
    if why=$($2); then echo "ok cli/$1"; else echo "FAIL cli/$1: $why"; fi
}

copies() {
    go 0 in.mp4 -o out.mp4 -m "$models/style3.onnx" || return
    same "$(probe in.mp4 v:0 pts_time)" "$(probe out.mp4 v:0 pts_time)" timestamps || return
    same "$(sound in.mp4)" "$(sound out.mp4)" sound || return
    same "$(size in.mp4)" "$(size out.mp4)" size || return
    [ ! -e out.mp4.part ] || { echo "out.mp4.part is still there"; return 1; }
    grep -q '^out.mp4: 20 frames in ' out || { echo "no closing line: $(cat out)"; return 1; }
    grep -q 'tile' err || { echo "no plan line: $(cat err)"; return 1; }
}
doubles() {
    go 0 in.mp4 -o twice.mkv -m "$models/upscale2x.onnx" --tile-width 96 --tile-height 64 || return
    same 320,180 "$(size twice.mkv)" size || return
    same 20 "$(frames twice.mkv)" frames
}
odd_sizes() {
    go 0 odd.mkv -o 'odd größe.mp4' || return
    same 161,91 "$(size 'odd größe.mp4')" size || return
    same 8 "$(frames 'odd größe.mp4')" frames
}
variable_rate() {
    go 0 vfr.mkv -o vfr-out.mkv || return
    same "$(probe vfr.mkv v:0 pts_time)" "$(probe vfr-out.mkv v:0 pts_time)" timestamps
}
encodes_sound() {
    go 0 vorbis.mkv -o vorbis.mp4 || return
    grep -q 'encoded as AAC' err || { echo "not told: $(cat err)"; return 1; }
    same aac "$(ffprobe -v error -select_streams a -show_entries stream=codec_name -of csv=p=0 vorbis.mp4)" codec
}
plays_anywhere() { # a source of full chroma and even size becomes 4:2:0
    go 0 rgb.mkv -o rgb.mp4 || return
    same yuv420p "$(ffprobe -v error -select_streams v -show_entries stream=pix_fmt -of csv=p=0 rgb.mp4)" format
}
copies_vorbis() {
    go 0 vorbis.mkv -o vorbis-copy.mkv || return
    same "$(sound vorbis.mkv)" "$(sound vorbis-copy.mkv)" sound
}
silent() {
    go 0 silent.mp4 -o silent-out.mp4 -q || return
    same 8 "$(frames silent-out.mp4)" frames || return
    same '' "$(cat out err)" output
}
other_encoder() {
    go 0 silent.mp4 -o jpeg.mov --encoder 'jpegenc quality=80' || return
    same mjpeg "$(ffprobe -v error -select_streams v -show_entries stream=codec_name -of csv=p=0 jpeg.mov)" codec
}
takes_parameters() {
    go 0 silent.mp4 -o a.mkv -p 'style_weights=0;1;0' || return
    go 0 silent.mp4 -o b.mkv -p style_weights=1:1 || return
    go 0 silent.mp4 -o c.mkv -p style_weights=2:1 || return
    same "$(ffmpeg -v error -i a.mkv -f md5 -)" "$(ffmpeg -v error -i b.mkv -f md5 -)" 'the same style' || return
    [ "$(ffmpeg -v error -i a.mkv -f md5 -)" != "$(ffmpeg -v error -i c.mkv -f md5 -)" ] ||
        { echo "two styles give the same picture"; return 1; }
}
refuses_parameters() {
    go 1 silent.mp4 -o p.mp4 -p no_such=1 || return
    fails no_such
}
keeps_files() {
    echo precious >there.mp4
    go 2 in.mp4 -o there.mp4 || return
    fails there.mp4 || return
    same precious "$(cat there.mp4)" content || return
    go 0 silent.mp4 -o there.mp4 -y || return
    same 8 "$(frames there.mp4)" frames
}
keeps_input() {
    cp in.mp4 self.mp4
    ln -s self.mp4 link.mp4
    go 2 self.mp4 -o self.mp4 -y || return
    go 2 self.mp4 -o link.mp4 -y || return
    cmp in.mp4 self.mp4
}
usage() {
    for arguments in '' 'in.mp4' '-o x.mp4' 'in.mp4 -o x.xyz' 'in.mp4 -o x.mp4 --no-such' 'in.mp4 b.mp4 -o x.mp4' \
            'in.mp4 -o x.mp4 -p noequals' 'in.mp4 -o x.mp4 --max-device-memory lots' 'in.mp4 -o x.mp4 --threads -1'; do
        # shellcheck disable=SC2086
        go 2 $arguments || { echo "($arguments)"; return 1; }
    done
    go 0 --version && go 0 --help
}
bad_input() {
    go 1 nothere.mp4 -o x.mp4 && fails nothere.mp4 || return
    head -c 5000 /dev/urandom >noise.mp4
    go 1 noise.mp4 -o x.mp4 && fails noise.mp4 || return
    go 1 sound.mkv -o x.mp4 && fails video || return
    go 1 in.mp4 -o /no/such/folder/x.mp4 && fails /no/such/folder || return
    go 1 in.mp4 -o x.mp4 --encoder nosuchencoder && grep -q nosuchencoder err || return
    [ ! -e x.mp4 ] && [ ! -e x.mp4.part ] || { echo "files left: $(ls x.mp4*)"; return 1; }
}
bad_model() {
    go 1 in.mp4 -o x.mp4 -m nothere.onnx && fails nothere.onnx || return
    head -c 3000 "$models/style3.onnx" >cut.onnx
    go 1 in.mp4 -o x.mp4 -m cut.onnx && fails cut.onnx || return
    [ ! -e x.mp4 ] && [ ! -e x.mp4.part ] || { echo "files left: $(ls x.mp4*)"; return 1; }
}
no_room() {
    go 5 in.mp4 -o x.mp4 --max-device-memory 64K || return
    fails '[0-9] [KM]iB\|[0-9] bytes'
}
# What `vidgen plan` tells is JSON, keeps to its budget, and has one way chosen; the sweep has times.
plans() {
    go 0 plan "$models/upscale2x.onnx" --size 640x360 --max-device-memory 16M || return
    grep -q '^memory .* MiB = weights' out && grep -q '^\* bands' out && grep -q 'over the budget' out ||
        { echo "not the plan: $(cat out)"; return 1; }
    go 0 plan "$models/upscale2x.onnx" --size 320x180 --max-device-memory 16M --json --sweep --threads 2 || return
    python3 - out <<'PYTHON' || return
import json, sys
d = json.load(open(sys.argv[1]))
plan, ways = d["plan"], d["ways"]
chosen = [w for w in ways if w["chosen"]]
def need(ok, what):
    if not ok:
        print(what, d)
        sys.exit(1)
need(d["budget"] == 16 << 20 and plan["bytes"]["arena"] <= d["budget"], "over the budget")
need(len(chosen) == 1 and chosen[0]["bytes"] == plan["bytes"]["arena"], "not one way chosen")
need(ways[0]["tiles"] == [1, 1] and ways[0]["bands"] == 1 and ways[0]["bytes"] > d["budget"], "whole frame")
need(all((w["bytes"] <= d["budget"]) == ("ms" in w) for w in ways), "what fits is measured, what does not is not")
need(any(w["tiles"] != [1, 1] and w["waste"] > 0 for w in ways), "no tiles")
PYTHON
    go 5 plan "$models/upscale2x.onnx" --size 640x360 --max-device-memory 64K || return
    fails 'needs at least' || return
    go 2 plan && go 2 plan a.onnx --size big && go 2 plan a.onnx --max-device-memory lots &&
        go 2 plan a.onnx --tile-width -1 && go 1 plan nothere.onnx && go 1 plan "$models/style3.onnx" --size 0x64
}
freezes() {
    go 1 freeze "$models/style3.onnx" in.mp4 || return
    fails 'nothing to freeze' || return
    go 1 freeze "$models/style3.onnx" nothere.mp4 && go 2 freeze && go 2 freeze "$models/style3.onnx" &&
        go 2 freeze --frames 0 a.onnx b.png && go 2 in.mp4 -o x.mp4 --norm-mode often
}
# An interpolator: twice the frames at twice the rate, the same length, and the sound as it was.
interpolates() {
    model=$("$build/tests/gst/time-model" 2 1 -1)
    go 0 in.mp4 -o between.mp4 -m "$model" --tile-width 96 --scene-cut off || return
    rm -r "$(dirname "$model")"
    same 40 "$(frames between.mp4)" frames || return
    same 50/1 "$(ffprobe -v error -select_streams v -show_entries stream=r_frame_rate -of csv=p=0 between.mp4)" rate ||
        return
    same "$(probe in.mp4 v:0 pts_time)" "$(probe between.mp4 v:0 pts_time | awk 'NR % 2')" 'timestamps of the source' ||
        return
    same "$(sound in.mp4)" "$(sound between.mp4)" sound
}
# Windows: as many frames as went in, also with a hop of our own.
windows() {
    model=$("$build/tests/gst/time-model" 8 8 0)
    go 0 in.mp4 -o window.mp4 -m "$model" --hop 5 --scene-cut on || return
    rm -r "$(dirname "$model")"
    same "$(probe in.mp4 v:0 pts_time)" "$(probe window.mp4 v:0 pts_time)" timestamps || return
    go 1 in.mp4 -o window.mp4 -y --window 3 && fails window || return
    go 2 in.mp4 -o window.mp4 -y --scene-cut maybe && go 2 in.mp4 -o window.mp4 -y --hop -1
}
# Plans for GPUs that are not there, by the tests' module and its stand-in for cuDNN.
described() {
    export VIDGEN_MODULE_PATH="$build/tests/cuda"
    go 0 plan "$models/style3.onnx" --device 8.6 --size 320x180 --max-device-memory 1G --steps || return
    grep -q '^device  cuda (described, capability 8.6' out && grep -q '^  conv .* packed [0-9]* @ .*: engine ' out ||
        { echo "not the plan: $(cat out)"; return 1; }
    go 0 plan "$models/style3.onnx" --device sm_86 --size 320x180 --max-device-memory 1G --steps --json --only || return
    python3 - out <<'PYTHON' || return
import json, sys
d = json.load(open(sys.argv[1]))
steps, size = d["steps"], d["plan"]["bytes"]["arena"]
convs = [s for s in steps if s["op"] == "conv"]
assert convs and all("engine" in s["kernel"] for s in convs), "no engines"
assert all(sum(s["scratch"]) <= size and sum(s["packed"]) <= size for s in steps), "outside of the arena"
assert [s["op"] for s in steps].count("read") == 1 and steps[-1]["op"] == "write", "not from frame to frame"
PYTHON
    go 1 plan "$models/style3.onnx" --device sm_52 || return
    fails 'sm_75, sm_80' || return
    go 5 plan "$models/upscale2x.onnx" --device sm_86 --size 640x360 --max-device-memory 64K --only || return
    go 2 plan "$models/style3.onnx" --device sm_86 --sweep || return
    unset VIDGEN_MODULE_PATH
}
# A long clip, one thread and a signal after the first frames.
start_long() {
    rm -f long-out.mp4 out err
    "$vidgen" long.mp4 -o long-out.mp4 --threads 1 -v >out 2>err </dev/null &
    pid=$!
    tries=0
    until grep -q ' fps' err 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || { kill -9 $pid; echo "no frame in 60 s: $(cat err)"; return 1; }
        sleep 0.1
    done
}
stops() {
    start_long || return
    kill -"$1" $pid
    status=0
    wait $pid || status=$?
    same 4 $status 'exit status' || return
    n=$(frames long-out.mp4)
    { [ "$n" -gt 0 ] && [ "$n" -lt 3000 ]; } || { echo "$n frames"; return 1; }
    grep -q "^long-out.mp4: stopped, playable, $n frames" out || { echo "$(cat out) but $n frames"; return 1; }
    same "$n" "$(ffmpeg -v error -i long-out.mp4 -map 0:v -f framecrc - | grep -c '^0,')" 'frames that decode' || return
    last=$(probe long-out.mp4 v:0 pts_time | tail -n 1)
    heard=$(probe long-out.mp4 a:0 pts_time | tail -n 1)
    awk -v a="$last" -v b="$heard" 'BEGIN { exit !(b - a < 0.1 && a - b < 0.1) }' ||
        { echo "picture ends at $last, sound at $heard"; return 1; }
}
interrupted() { stops INT; }
terminated() { stops TERM; }
killed() {
    start_long || return
    # Enough frames are inside for the second to come before the end.
    kill -TERM $pid
    kill -STOP $pid
    kill -INT $pid
    kill -CONT $pid
    status=0
    wait $pid || status=$?
    same 130 $status 'exit status' || return
    [ ! -e long-out.mp4 ] && [ ! -e long-out.mp4.part ] || { echo "files left: $(ls long-out*)"; return 1; }
}

clip in.mp4 160 90 20 avenc_aac mp4mux
clip long.mp4 320 180 3000 avenc_aac mp4mux
ffmpeg -v error -y -f lavfi -i testsrc=size=161x91:rate=25 -frames:v 8 -pix_fmt yuv444p -c:v libx264 odd.mkv </dev/null
ffmpeg -v error -f lavfi -i testsrc=size=160x90:rate=25 -frames:v 8 -pix_fmt rgb24 -c:v png rgb.mkv </dev/null
clip vorbis.mkv 160 90 8 vorbisenc matroskamux
ffmpeg -v error -f lavfi -i testsrc=size=160x90:rate=50 -vf 'select=not(mod(n\,3))+not(mod(n\,7))' -vsync vfr \
    -frames:v 12 -c:v libx264 vfr.mkv </dev/null
ffmpeg -v error -i in.mp4 -an -c:v copy -frames:v 8 silent.mp4 </dev/null
ffmpeg -v error -i vorbis.mkv -vn -c:a copy sound.mkv </dev/null

check 'copies timestamps and sound' copies
check 'doubles the size' doubles
check 'odd sizes, odd names' odd_sizes
check 'variable rate' variable_rate
check 'full chroma to 4:2:0' plays_anywhere
check 'encodes sound that does not fit' encodes_sound
check 'copies sound that fits' copies_vorbis
check 'silent film, quiet program' silent
check 'another encoder' other_encoder
check 'parameters' takes_parameters
check 'unknown parameter' refuses_parameters
check 'keeps files' keeps_files
check 'keeps its input' keeps_input
check 'usage errors' usage
check 'bad input' bad_input
check 'bad model' bad_model
check 'too little memory' no_room
check 'plan' plans
check 'freeze' freezes
check 'interpolates' interpolates
check 'windows' windows
[ ! -f "$build/tests/cuda/vidgen-cuda.so" ] || check 'plan for a GPU' described
check 'interrupted' interrupted
check 'terminated' terminated
check 'killed' killed
