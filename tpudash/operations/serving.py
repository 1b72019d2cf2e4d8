"""Launching a server of a model instead of a trainer: which model, and that it is there."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from tpudash.domain.recipes import SERVER
from tpudash.domain.run import RUN_NAME_PATTERN, Recipe, RunSpec, run_url_of
from tpudash.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from tpudash.domain.operation import LaunchRequest
    from tpudash.gateways.protocols import Cloud

EXPORTS: Final = "export"
"""Where a trainer exports to, in its run's folder."""
_GRAPH: Final = "saved_model.pb"
_MOST_VERSIONS: Final = 10
_VERSION: Final = re.compile(r"\d+")


def check_serving(request: LaunchRequest) -> None:
    """See that nothing is asked for that only a trainer does.

    Raises:
        UsageError: Something is.
    """
    if request.serve is None:
        return
    given = {
        "--steps": request.steps,
        "--checkpoint-every": request.checkpoint_every_steps,
        "--seed": request.seed,
        "--validate-first": request.validate_first or None,
        "--delete-node-when-done": request.delete_node_when_done or None,
    }
    for flag, value in given.items():
        if value is not None:
            raise UsageError(
                f"{flag} is for training; a server trains nothing", hint="leave it out"
            )
    if not RUN_NAME_PATTERN.fullmatch(request.serve) and "/" not in request.serve:
        raise UsageError(
            f"{request.serve!r} is neither a run nor a folder",
            hint="give the name of a run of this bucket, or gs://BUCKET/FOLDER",
        )


def serving_recipe(request: LaunchRequest, bucket: str) -> Recipe:
    """Return what a node runs in order to serve; words after the options go to the server."""
    url = model_url(request.serve or "", bucket)
    words = ("--model", url, *request.trainer_arguments)
    return Recipe(
        name=SERVER.name, command=("python3", "-m", SERVER.module, *words), workers=SERVER.workers
    )


def model_url(serve: str, bucket: str) -> str:
    """Return the folder of a model: of a run of the bucket, or as it is given."""
    if "/" not in serve:
        return run_url_of(bucket, serve)
    # Links are kept as they are written, as in the bucket's own name.
    return serve.rstrip("/") if serve.startswith("gs://") else os.path.abspath(serve)  # noqa: PTH100


async def check_model(cloud: Cloud, request: LaunchRequest, bucket: str) -> None:
    """See that there is a model to serve, before a node costs anything.

    Raises:
        NotFoundError: There is none.
        UsageError: A node could not see it.
        TpudashError: The bucket could not be asked.
    """
    if request.serve is None:
        return
    url = model_url(request.serve, bucket)
    if not url.startswith("gs://") and not cloud.is_emulator:
        raise UsageError(f"a TPU VM can't see the folder {url} of this machine", hint="use gs://")
    for folder in (url, f"{url}/{EXPORTS}"):
        names = await _names(cloud, folder)
        versions = sorted(filter(_VERSION.fullmatch, names), key=int, reverse=True)
        if _GRAPH in names:
            return
        for version in versions[:_MOST_VERSIONS]:
            if _GRAPH in await _names(cloud, f"{folder}/{version}"):
                return
    raise NotFoundError(
        f"there is no exported model in {url}",
        hint="TensorFlow's trainer exports when its run is finished: tpudash runs shows how far "
        "it is",
    )


async def _names(cloud: Cloud, folder: str) -> frozenset[str]:
    try:
        urls = await cloud.bucket.list(folder)
    except NotFoundError:
        return frozenset()
    return frozenset(url.rstrip("/").rsplit("/", 1)[-1] for url in urls)


def serving_effects(spec: RunSpec) -> tuple[str, ...]:
    """Return what a server does, for its plan; empty for a trainer."""
    if spec.recipe.name != SERVER.name:
        return ()
    command = spec.recipe.command
    model = command[command.index("--model") + 1]
    port = command[command.index("--port") + 1] if "--port" in command else "8501"
    return (
        f"Serves the newest export of {model} on port {port} of the node, and takes up newer ones.",
        "Whoever reaches that port through the project's firewall may ask; it checks no identity.",
    )
