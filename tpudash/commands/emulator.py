"""`tpudash emulator`: serve a local Google Cloud for TPU nodes, and steer it."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from tpudash.commands.emulator_fault import fault
from tpudash.commands.emulator_steer import DURATION, steer, tell
from tpudash.commands.state import CliState, connection_options, json_option, pass_state
from tpudash.errors import UsageError


@click.group("emulator")
def emulator() -> None:
    """Serve and steer a local emulator of Google Cloud.

    Its nodes are processes of this machine; nothing leaves the machine and nothing costs money.
    """


@emulator.command("serve")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port; 0 for a free one.")
@click.option("--rest-port", type=click.IntRange(0, 65535), default=0, help="For REST and gcloud.")
@click.option("--storage-port", type=click.IntRange(0, 65535), default=0, help="For gs:// buckets.")
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the state, the nodes' disks and the bucket; see also: tpudash paths.",
)
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File that is written once calls are answered, with the endpoint in JSON.",
)
@click.option(
    "--faults",
    "faults_file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Faults to begin with: a list of objects with the fields of `fault`, in JSON or YAML.",
)
@click.option("--seed", type=int, help="Seed of every random choice.")
@click.option("--metrics-period", type=DURATION, default=60.0, help="Time between two samples.")
@click.option("--metrics-latency", type=DURATION, default=0.0, help="Until a sample can be read.")
@click.option("--create-seconds", type=DURATION, default=3.0, help="From CREATING to READY.")
@click.option("--delete-seconds", type=DURATION, default=1.5, help="From DELETING to gone.")
@click.option(
    "--exit-with-stdin", is_flag=True, help="End at the end of standard input, as a child would."
)
@pass_state
def serve(
    state: CliState,
    /,
    *,
    port: int,
    rest_port: int,
    storage_port: int,
    state_dir: Path | None,
    ready_file: Path | None,
    faults_file: Path | None,
    seed: int | None,
    metrics_period: float,
    metrics_latency: float,
    create_seconds: float,
    delete_seconds: float,
    exit_with_stdin: bool,
) -> None:
    """Serve on 127.0.0.1 until interrupted."""
    from tpudash.emulator.serve import run
    from tpudash.emulator.settings import EmulatorSettings

    if metrics_period <= 0:
        raise UsageError("--metrics-period must be more than 0s")
    folder = state_dir or state.paths.state_dir / "emulator"
    settings = EmulatorSettings(
        state_dir=folder.absolute(),
        port=port,
        rest_port=rest_port,
        storage_port=storage_port,
        ready_file=ready_file.absolute() if ready_file else None,
        faults_file=faults_file.absolute() if faults_file else None,
        seed=seed,
        metrics_period_s=metrics_period,
        metrics_latency_s=metrics_latency,
        create_s=create_seconds,
        delete_s=delete_seconds,
    )
    run(settings, exit_with_stdin=exit_with_stdin)


@emulator.command("preempt")
@click.argument("node")
@click.option("--notice", type=DURATION, default=30.0, help="Time from SIGTERM to SIGKILL.")
@click.option("--wait/--no-wait", default=True, help="Wait until the node is PREEMPTED.")
@json_option
@connection_options
@pass_state
def preempt(state: CliState, node: str, notice: float, wait: bool, as_json: bool) -> None:
    """Take a spot or preemptible NODE back, as Google does: notice, then the end."""
    result = steer(state, lambda control: control.preempt(node, notice, wait=wait))
    tell({"node": node, "state": result}, f"{node}: {result or 'gone'}", as_json=as_json)


@emulator.command("maintenance")
@click.argument("node")
@click.option("--notice", type=DURATION, default=0.0, help="Time until the window begins.")
@click.option("--duration", type=DURATION, default=10.0, help="Time in REPAIRING.")
@click.option(
    "--outcome",
    type=click.Choice(["READY", "UNKNOWN", "TERMINATED"]),
    default="READY",
    help="State after the window.",
)
@click.option("--wait/--no-wait", default=True, help="Wait for the end of the window.")
@json_option
@connection_options
@pass_state
def maintenance(
    state: CliState,
    node: str,
    notice: float,
    duration: float,
    outcome: str,
    wait: bool,
    as_json: bool,
) -> None:
    """Announce and carry out maintenance of a READY NODE."""
    result = steer(
        state,
        lambda control: control.maintenance(
            node, notice_s=notice, duration_s=duration, outcome=outcome, wait=wait
        ),
    )
    tell({"node": node, "state": result}, f"{node}: {result or 'gone'}", as_json=as_json)


@emulator.command("capacity")
@click.argument("zone")
@click.argument("accelerator_type")
@click.argument("chips")
@json_option
@connection_options
@pass_state
def capacity(state: CliState, zone: str, accelerator_type: str, chips: str, as_json: bool) -> None:
    """Give a ZONE so many CHIPS of a type, in use or free; `none` lifts the limit.

    Instead of a type there may be a generation (v2), or a reservation (reserved:v2-8).
    """
    limit = _limit(chips)
    steer(state, lambda control: control.set_capacity(zone, accelerator_type, limit))
    answer = {"zone": zone, "accelerator_type": accelerator_type, "chips": limit}
    shown = "unlimited" if limit is None else f"{limit} chips"
    tell(answer, f"{zone} {accelerator_type}: {shown}", as_json=as_json)


@emulator.command("quota")
@click.argument("place")
@click.argument("name")
@click.argument("limit")
@json_option
@connection_options
@pass_state
def quota(state: CliState, place: str, name: str, limit: str, as_json: bool) -> None:
    """Set the quota NAME of a PLACE (zone or region) to LIMIT; `none` lifts it.

    Names are Google's, such as TPUV2sPreemptiblePerProjectPerZoneForTPUAPI.
    """
    value = _limit(limit)
    steer(state, lambda control: control.set_quota(place, name, value))
    shown = "unlimited" if value is None else str(value)
    answer = {"place": place, "name": name, "limit": value}
    tell(answer, f"{place} {name}: {shown}", as_json=as_json)


def _limit(text: str) -> int | None:
    if text == "none":
        return None
    if not text.isdecimal():
        raise UsageError(f"{text!r} is not a number", hint="give a whole number, or none")
    return int(text)


@emulator.command("environment")
@json_option
@connection_options
@pass_state
def environment(state: CliState, as_json: bool) -> None:
    """Print what leads gcloud, google-cloud-storage and TensorFlow to the emulator.

    For a shell: eval "$(tpudash emulator environment)"
    """
    description = steer(state, lambda control: control.describe())
    own = {"TPUDASH_ENDPOINT": description["endpoint"]}
    if state.settings.first_project:
        own["CLOUDSDK_CORE_PROJECT"] = state.settings.first_project
    variables = {**description["environment"], **own}
    lines = [f"export {key}={shlex.quote(value)}" for key, value in sorted(variables.items())]
    tell(variables, "\n".join(lines), as_json=as_json)


@emulator.command("counters")
@click.option("--reset", is_flag=True, help="Start again at zero.")
@json_option
@connection_options
@pass_state
def counters(state: CliState, reset: bool, as_json: bool) -> None:
    """Show how often each method that changes resources was called."""
    counted = steer(state, lambda control: control.counters(reset=reset))
    lines = [f"{count:6d}  {method}" for method, count in sorted(counted.items())]
    tell(counted, "\n".join(lines) or "no calls that change anything", as_json=as_json)


emulator.add_command(fault)
