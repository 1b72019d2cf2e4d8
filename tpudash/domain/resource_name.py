"""Full resource names of the Cloud TPU API, such as `projects/P/locations/Z/nodes/N`.

Source: https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.nodes
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ResourceName:
    """The parts of a resource name below a location.

    Attributes:
        project: Project id or number, as the API wrote it.
        location: Zone, such as `us-central1-b`.
        collection: `nodes`, `queuedResources`, `operations`, ...
        resource_id: The last segment.
    """

    project: str
    location: str
    collection: str
    resource_id: str

    @classmethod
    def parse(cls, name: str) -> ResourceName:
        """Split a full resource name.

        Raises:
            ValueError: The text is not of the form `projects/P/locations/L/COLLECTION/ID`.
        """
        parts = name.split("/")
        if len(parts) != 6 or parts[0] != "projects" or parts[2] != "locations" or not all(parts):
            msg = f"not a resource name of the form projects/P/locations/L/COLLECTION/ID: {name!r}"
            raise ValueError(msg)
        return cls(parts[1], parts[3], parts[4], parts[5])

    def __str__(self) -> str:
        return (
            f"projects/{self.project}/locations/{self.location}/{self.collection}/"
            f"{self.resource_id}"
        )

    @property
    def parent(self) -> str:
        """The location that holds the resource: `projects/P/locations/L`."""
        return location_name(self.project, self.location)


def location_name(project: str, location: str) -> str:
    """Return `projects/P/locations/L`; `-` as location means all of them."""
    return f"projects/{project}/locations/{location}"


def node_name(project: str, zone: str, node_id: str) -> str:
    """Return the full resource name of a node."""
    return str(ResourceName(project, zone, "nodes", node_id))


def request_name(project: str, zone: str, request_id: str) -> str:
    """Return the full resource name of a queued resource."""
    return str(ResourceName(project, zone, "queuedResources", request_id))


def is_same_resource(one: str, other: str) -> bool:
    """Whether two full names mean the same; the project may stand as its id or as its number."""
    return one.split("/")[2:] == other.split("/")[2:]


def may_be_in(name: str, project: str) -> bool:
    """Whether a full name can be of a project, which the service may write as its number."""
    named = name.split("/")[1] if name.startswith("projects/") else ""
    return named == project or named.isdecimal() or project.isdecimal()


def region_of(zone: str) -> str:
    """Return the region of a zone: `us-central1-b` lies in `us-central1`."""
    return zone.rsplit("-", 1)[0]
