"""`google.cloud.location.Locations`: the zones of Cloud TPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.cloud.location import locations_pb2

from tpudash.emulator.errors import invalid_field, not_found
from tpudash.emulator.identifiers import parse_parent, region_of
from tpudash.emulator.rpc import Call, Method, Service
from tpudash.emulator.services.paging import take_page

if TYPE_CHECKING:
    from tpudash.emulator.world.world import World

_Pb = locations_pb2


class LocationsService:
    """Answers for locations."""

    def __init__(self, world: World) -> None:
        self._world = world

    def table(self) -> Service:
        """Return the service with all its methods."""
        listing = Method(
            "ListLocations", _Pb.ListLocationsRequest, _Pb.ListLocationsResponse, self.list
        )
        getting = Method("GetLocation", _Pb.GetLocationRequest, _Pb.Location, self.get)
        return Service("google.cloud.location.Locations", (listing, getting))

    async def list(self, request: Any, _: Call) -> Any:
        """List the zones."""
        parts = request.name.split("/")
        if len(parts) != 2 or parts[0] != "projects" or not parts[1]:
            raise invalid_field("name", f'"{request.name}" is not projects/*')
        items = [self._location(parts[1], zone) for zone in self._world.catalogue.zones]
        page, token = take_page(
            items, request.page_size, request.page_token, default=100, maximum=1_000
        )
        return _Pb.ListLocationsResponse(locations=page, next_page_token=token)

    async def get(self, request: Any, _: Call) -> Any:
        """Return one zone."""
        project, zone = parse_parent(request.name)
        if zone not in self._world.catalogue.zones:
            raise not_found(request.name)
        return self._location(project, zone)

    @staticmethod
    def _location(project: str, zone: str) -> Any:
        location = _Pb.Location(name=f"projects/{project}/locations/{zone}", location_id=zone)
        location.labels["cloud.googleapis.com/region"] = region_of(zone)
        return location
