#!/bin/bash
# Startup script of a tpudash node: fetches the run's bundle and keeps its agent running.
# The same text serves as node metadata `startup-script` on the real cloud and in the emulator.
# It runs at each boot and may run twice at once; bash 3.2 is enough.
set -u

METADATA="http://${GCE_METADATA_HOST:-metadata.google.internal}/computeMetadata/v1"
NODE_DIR="${TPUDASH_NODE_DIR:-/var/lib/tpudash}"
TPU_WHEEL="tensorflow-tpu==2.19.1"
JAX_VERSIONS=">=0.6,<0.11"
# Where Google keeps the libtpu that a JAX of an older Python needs.
LIBTPU_LINKS="https://storage.googleapis.com/jax-releases/libtpu_releases.html"
JAX_HELPERS="optax>=0.2.4 orbax-checkpoint>=0.11.10 flatbuffers fsspec gcsfs"
CLIENTS="google-cloud-logging google-cloud-storage google-cloud-tpu psutil"
SERVER="starlette uvicorn httptools uvloop orjson prometheus-client"
AGENT_PID=""
GOING=""

say() {
    local line
    line="$(date -u +%Y-%m-%dT%H:%M:%SZ) [startup] $*"
    echo "$line"
    echo "$line" >> "$NODE_DIR/startup.log" 2>/dev/null
}

fail() {
    say "ERROR: $*"
    exit 1
}

metadata() {
    if command -v curl >/dev/null 2>&1; then
        curl -sf --noproxy '*' --max-time 10 -H 'Metadata-Flavor: Google' "$METADATA/$1"
    else
        python3 - "$METADATA/$1" <<'PY'
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
request = urllib.request.Request(sys.argv[1], headers={"Metadata-Flavor": "Google"})
try:
    sys.stdout.write(opener.open(request, timeout=10).read().decode())
except Exception:
    sys.exit(1)
PY
    fi
}

# Prints a member of the spec, by its keys: field bundle url
field() {
    python3 -c '
import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2:]:
    value = value.get(key, "") if isinstance(value, dict) else ""
print(value)' "$NODE_DIR/spec.json" "$@"
}

sha256_of() {
    python3 -c '
import hashlib, sys
print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' "$1"
}

# One script at a time: mkdir is atomic; a lock whose owner is gone is taken over.
take_lock() {
    local owner
    if ! mkdir "$NODE_DIR/startup.lock" 2>/dev/null; then
        owner="$(cat "$NODE_DIR/startup.lock/pid" 2>/dev/null)"
        if [ -n "$owner" ] && kill -0 "$owner" 2>/dev/null \
            && ps -o command= -p "$owner" 2>/dev/null | grep -q 'bash'; then
            say "another startup script runs (pid $owner); nothing to do"
            exit 0
        fi
    fi
    echo $$ > "$NODE_DIR/startup.lock/pid"
    trap 'rm -rf "$NODE_DIR/startup.lock"' EXIT
}

read_spec() {
    local try
    for try in 1 2 3 4 5 6 7 8 9 10; do
        if metadata instance/attributes/tpudash-spec > "$NODE_DIR/spec.json.new" 2>/dev/null \
            && [ -s "$NODE_DIR/spec.json.new" ]; then
            mv "$NODE_DIR/spec.json.new" "$NODE_DIR/spec.json"
            return
        fi
        say "the metadata server has no tpudash-spec yet (try $try)"
        sleep 1
    done
    fail "no tpudash-spec in the node's metadata; this node was not made by tpudash launch"
}

copy_from() {
    case "$1" in
        gs://*)
            if command -v gcloud >/dev/null 2>&1; then
                gcloud storage cp "$1" "$2" >/dev/null 2>&1 && return 0
            fi
            if command -v gsutil >/dev/null 2>&1; then
                gsutil -q cp "$1" "$2" && return 0
            fi
            python3 - "$1" "$2" <<'PY'
import sys
from google.cloud.storage import Client
bucket, _, name = sys.argv[1][5:].partition("/")
Client().bucket(bucket).blob(name).download_to_filename(sys.argv[2])
PY
            ;;
        *) cp "$1" "$2" ;;
    esac
}

fetch_bundle() {
    local url sum found try
    url="$(field bundle url)"
    sum="$(field bundle sha256)"
    case "$sum" in ""|*[!0-9a-f]*) fail "the spec names no bundle with a sha256" ;; esac
    CODE="$NODE_DIR/code/$sum"
    if [ -f "$CODE/.complete" ]; then
        say "the bundle is already here"
        return
    fi
    for try in 1 2 3 4 5; do
        say "fetching $url"
        if copy_from "$url" "$NODE_DIR/bundle.tar.gz"; then
            found="$(sha256_of "$NODE_DIR/bundle.tar.gz")"
            [ "$found" = "$sum" ] && break
            say "the bundle's sha256 is $found, the spec says $sum"
        fi
        [ "$try" = 5 ] && fail "BUCKET_ACCESS: the bundle $url cannot be fetched whole"
        sleep "$try"
    done
    rm -rf "$CODE"
    mkdir -p "$CODE" || fail "cannot write to $CODE"
    tar -xzf "$NODE_DIR/bundle.tar.gz" -C "$CODE" || fail "the bundle cannot be unpacked"
    [ -f "$CODE/trainer/agent/__main__.py" ] || fail "the bundle holds no trainer/agent"
    touch "$CODE/.complete"
    rm -f "$NODE_DIR/bundle.tar.gz"
    say "unpacked the bundle into $CODE"
}

# Says by the installed metadata, never by an import, whether a Python can run the job.
python_fits() {
    "$1" - "$2" "$FRAMEWORK" <<'PY' 2>/dev/null
import sys
from importlib import metadata

def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None

def numbers(text):
    return tuple(int(part) for part in text.split(".")[:2])

kind, framework = sys.argv[1:3]
if framework == "jax":
    needed = ["jax", "jaxlib", "optax", "orbax-checkpoint"] + ["libtpu"] * (kind == "tpu")
    there = all(version(name) for name in needed)
    fits = there and (0, 6) <= numbers(version("jax")) <= (0, 10)
    sys.exit(0 if fits and sys.version_info >= (3, 10) else 1)
wheels = ["tensorflow-tpu"] if kind == "tpu" else []
wheels += ["tensorflow", "tensorflow-cpu", "tensorflow-macos"]
found = next((version(name) for name in wheels if version(name)), None)
fits = sys.version_info >= (3, 10) and found and (2, 18) <= numbers(found) <= (2, 21)
sys.exit(0 if fits else 1)
PY
}

clients_there() {
    # shellcheck disable=SC2086
    "$1" -c 'import sys
from importlib import metadata
[metadata.version(name) for name in sys.argv[1:]]' $NEEDED 2>/dev/null
}

# Prints what the recipe trains with: tensorflow, jax, or none for a program of the user's own.
framework() {
    case "$(field recipe name)" in
        tensorflow*) echo tensorflow ;;
        jax*) echo jax ;;
        *) echo none ;;
    esac
}

choose_python() {
    local kind="cpu"
    WORKERS="$(metadata instance/attributes/worker-network-endpoints | tr ',' '\n' | grep -c .)"
    if [ -e /dev/accel0 ] || [ -e /dev/vfio/0 ]; then kind="tpu"; fi
    PYTHON="$(command -v python3)" || fail "there is no python3"
    if [ -x "$NODE_DIR/venv/bin/python3" ]; then PYTHON="$NODE_DIR/venv/bin/python3"; fi
    FRAMEWORK="$(field recipe name)"
    NEEDED="google-cloud-logging google-cloud-storage"
    case "$FRAMEWORK" in
        *-serve) NEEDED="$NEEDED starlette uvicorn orjson prometheus-client" CLIENTS="$CLIENTS $SERVER" ;;
    esac
    case "$FRAMEWORK" in
        tensorflow*) FRAMEWORK="tensorflow" ;;
        jax*) FRAMEWORK="jax" ;;
        *) FRAMEWORK="none" kind="any" ;;
    esac
    if { [ "$kind" = any ] || python_fits "$PYTHON" "$kind"; } && clients_there "$PYTHON"; then
        say "using $PYTHON"
        return
    fi
    # In the emulator the interpreter is the image: nothing is installed into it.
    if [ -n "${TPUDASH_NODE_DIR:-}" ]; then
        say "WARNING: $PYTHON lacks a fitting $FRAMEWORK or the Google clients; trying all the same"
        return
    fi
    install_packages "$kind"
}

make_environment() {
    rm -rf "$NODE_DIR/venv"
    "$PYTHON" -m venv "$@" "$NODE_DIR/venv"
}

install_packages() {
    local wheel="$TPU_WHEEL" share="" more=""
    [ "$1" = cpu ] && wheel="tensorflow-cpu>=2.18,<2.22"
    if [ "$FRAMEWORK" = jax ]; then
        wheel="jax[tpu]$JAX_VERSIONS" more="-f $LIBTPU_LINKS $JAX_HELPERS"
        [ "$1" = cpu ] && wheel="jax$JAX_VERSIONS" more="$JAX_HELPERS"
    fi
    if [ "$1" = any ] || python_fits "$PYTHON" "$1"; then
        wheel="" more="" share="--system-site-packages"
    elif [ "${WORKERS:-1}" -gt 1 ] && [ "$FRAMEWORK" = tensorflow ]; then
        # The program's TensorFlow must equal that of the image's tpu-runtime service.
        say "WARNING: several hosts: keeping the image's own TensorFlow"
        wheel="google-api-python-client" share="--system-site-packages"
    fi
    say "making a virtual environment in $NODE_DIR/venv"
    if [ ! -x "$NODE_DIR/venv/bin/pip" ]; then
        make_environment $share \
            || { apt-get update -q && apt-get install -q -y python3-venv \
                && make_environment $share; } \
            || fail "VERSION: cannot make a virtual environment"
    fi
    PYTHON="$NODE_DIR/venv/bin/python3"
    say "installing $wheel $more $CLIENTS"
    # shellcheck disable=SC2086
    "$PYTHON" -m pip install -q --disable-pip-version-check ${wheel:+"$wheel"} $more $CLIENTS \
        || fail "VERSION: pip could not install $wheel $more $CLIENTS"
    say "installed"
}

on_signal() {
    GOING=yes
    [ -n "$AGENT_PID" ] && kill -TERM "$AGENT_PID" 2>/dev/null
}

# Waits for the agent even when a signal interrupts the wait.
wait_for_agent() {
    local code
    while :; do
        wait "$AGENT_PID"
        code=$?
        kill -0 "$AGENT_PID" 2>/dev/null || return "$code"
    done
}

# The agent ends 0 finished, 65 failed for good, 75 stopped; anything else is a crash.
run_agent() {
    local code pause=1 began
    trap on_signal TERM INT HUP
    cd "$CODE" || fail "$CODE is gone"
    while :; do
        began="$(date +%s)"
        "$PYTHON" -m trainer.agent < /dev/null &
        AGENT_PID=$!
        wait_for_agent
        code=$?
        AGENT_PID=""
        case "$code" in
            0) say "the agent finished"; return 0 ;;
            65) say "the agent says that the run failed"; return 0 ;;
            75) say "the agent stopped, the node has to go"; return 0 ;;
        esac
        [ -n "$GOING" ] && { say "stopping"; return 0; }
        if [ $(($(date +%s) - began)) -gt 60 ]; then pause=1; fi
        say "the agent ended with $code; starting it again in $pause s"
        sleep "$pause"
        pause=$((pause * 2))
        [ "$pause" -gt 30 ] && pause=30
    done
}

# A transient unit outlives the startup service and gets SIGTERM with time to save.
hand_over_to_systemd() {
    [ -z "${TPUDASH_NODE_DIR:-}" ] || return 1
    [ "$(id -u)" = 0 ] || return 1
    [ -z "${TPUDASH_IN_UNIT:-}" ] || return 1
    command -v systemd-run >/dev/null 2>&1 || return 1
    [ -d /run/systemd/system ] || return 1
    cp "$0" "$NODE_DIR/startup.sh" && chmod 755 "$NODE_DIR/startup.sh" || return 1
    systemctl is-active -q tpudash-agent.service && { say "the unit is already active"; exit 0; }
    systemctl reset-failed tpudash-agent.service 2>/dev/null
    rm -rf "$NODE_DIR/startup.lock"
    systemd-run --quiet --unit=tpudash-agent --description="tpudash agent" \
        --property=KillMode=mixed --property=TimeoutStopSec=28 \
        --setenv=TPUDASH_IN_UNIT=1 --setenv=HOME=/root \
        /bin/bash "$NODE_DIR/startup.sh" || return 1
    say "handed over to the unit tpudash-agent (journalctl -u tpudash-agent)"
    exit 0
}

mkdir -p "$NODE_DIR" || { echo "ERROR: cannot write to $NODE_DIR"; exit 1; }
say "startup script begins on $(hostname), pid $$"
take_lock
hand_over_to_systemd
command -v python3 >/dev/null 2>&1 || fail "VERSION: this image has no python3"
read_spec
say "run $(field run), attempt $(field attempt)"
fetch_bundle
choose_python
run_agent
