"""The memory of which lists the wildcard is refused for."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from tpudash.domain.failure import CloudStatus
from tpudash.errors import NotAllowedError, TpudashError, UnreachableError
from tpudash.gateways.everywhere import FAULT_HOLDS_S, REFUSAL_HOLDS_S, ZONES_AT_ONCE, Everywhere
from tpudash.gateways.translate import to_error


@dataclass
class Clock:
    time: float = 1_000.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.time, UTC)

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


def error(code: str, message: str) -> TpudashError:
    return to_error(CloudStatus(code, message), "list", changes=False)


@dataclass
class Zones:
    """What each location answers; an error is raised."""

    answers: dict[str, list[str] | TpudashError]
    asked: list[str] = field(default_factory=list)
    zones_asked: int = 0

    async def list_zones(self) -> tuple[str, ...]:
        self.zones_asked += 1
        return tuple(name for name in self.answers if name != "-")

    async def list_in(self, location: str) -> tuple[list[str], tuple[str, ...]]:
        self.asked.append(location)
        answer = self.answers[location]
        if isinstance(answer, TpudashError):
            raise answer
        return answer, ()


REFUSED = error("INVALID_ARGUMENT", "- is no location")


async def test_the_wildcard_is_tried_again_after_a_while() -> None:
    zones = Zones({"-": REFUSED, "a": ["x"], "b": ["y"]})
    clock = Clock()
    everywhere = Everywhere(zones.list_zones, clock)
    assert await everywhere.gather("nodes", "-", zones.list_in) == (["x", "y"], ())
    await everywhere.gather("nodes", "-", zones.list_in)
    assert zones.asked.count("-") == 1
    assert zones.zones_asked == 1

    clock.time += REFUSAL_HOLDS_S + 1
    zones.answers["-"] = ["all"]
    assert await everywhere.gather("nodes", "-", zones.list_in) == (["all"], ())


async def test_a_refusal_of_one_list_is_none_of_another() -> None:
    zones = Zones({"-": REFUSED, "a": ["x"]})
    everywhere = Everywhere(zones.list_zones, Clock())
    await everywhere.gather("nodes", "-", zones.list_in)
    zones.answers["-"] = ["all"]
    assert await everywhere.gather("requests", "-", zones.list_in) == (["all"], ())


@pytest.mark.parametrize(
    "refusal",
    [
        error("UNAUTHENTICATED", "no"),
        error("RESOURCE_EXHAUSTED", "Too many requests"),
        error("PERMISSION_DENIED", "Cloud TPU API has not been used in project 1 before"),
        error("DEADLINE_EXCEEDED", "late"),
    ],
)
async def test_what_is_not_about_the_wildcard_is_not_asked_forty_times(
    refusal: TpudashError,
) -> None:
    zones = Zones({"-": refusal, "a": ["x"]})
    with pytest.raises(TpudashError) as caught:
        await Everywhere(zones.list_zones, Clock()).gather("nodes", "-", zones.list_in)
    assert caught.value is refusal
    assert zones.asked == ["-"]


async def test_where_no_zone_answers_the_telling_refusal_is_given() -> None:
    denied = error("PERMISSION_DENIED", "Permission 'tpu.nodes.list' denied")
    late = error("UNAVAILABLE", "The service is currently unavailable.")
    zones = Zones({"-": REFUSED, "a": late, "b": denied})
    with pytest.raises(NotAllowedError):
        await Everywhere(zones.list_zones, Clock()).gather("nodes", "-", zones.list_in)


async def test_a_refusal_that_holds_for_all_names_no_zone() -> None:
    denied = [error("PERMISSION_DENIED", f"Permission denied on {place}") for place in "-ab"]
    zones = Zones(dict(zip("-ab", denied, strict=True)))
    with pytest.raises(NotAllowedError) as caught:
        await Everywhere(zones.list_zones, Clock()).gather("nodes", "-", zones.list_in)
    assert caught.value is denied[0]


async def test_one_zone_asks_for_nothing_else() -> None:
    zones = Zones({"-": ["all"], "a": error("UNAVAILABLE", "x")})
    with pytest.raises(UnreachableError):
        await Everywhere(zones.list_zones, Clock()).gather("nodes", "a", zones.list_in)
    assert zones.asked == ["a"]


DOWN = error("UNAVAILABLE", "The service is currently unavailable.")


async def test_a_service_that_is_down_is_not_asked_for_every_zone() -> None:
    zones = Zones({"-": DOWN, **{f"z{number}": DOWN for number in range(60)}})
    with pytest.raises(UnreachableError):
        await Everywhere(zones.list_zones, Clock()).gather("nodes", "-", zones.list_in)
    assert len(zones.asked) == 1 + ZONES_AT_ONCE


async def test_a_region_that_is_down_hides_none_of_the_others() -> None:
    down = dict.fromkeys((f"a{number}" for number in range(ZONES_AT_ONCE - 1)), DOWN)
    zones = Zones({"-": DOWN, **down, "b": ["x"], "c": DOWN, "d": ["y"]})
    clock = Clock()
    everywhere = Everywhere(zones.list_zones, clock)
    found = await everywhere.gather("nodes", "-", zones.list_in)
    assert found == (["x", "y"], (*down, "c"))
    clock.time += FAULT_HOLDS_S + 1
    zones.answers["-"] = ["all"]
    assert (await everywhere.gather("nodes", "-", zones.list_in))[0] == ["all"]
