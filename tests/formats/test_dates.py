"""Instants, zones, texts and lengths of time against Python's own datetime: all zones, 1900 to 2100."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from importlib.resources import files
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harnpy.formats import dates, time_zones
from harnpy.formats.dates import (
    FIRST,
    LAST,
    SECOND,
    DateError,
    NoSuchDate,
    in_zone,
    instant_from_number,
    instant_in_zone,
    instant_of,
    instant_to_number,
    on_calendar,
    parse_date,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAMES = sorted(time_zones.names())
YEARS = st.integers(1900, 2099)
MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
ANY_MOMENTS = st.datetimes(timezones=st.just(UTC))


@cache
def zone_of_judge(name: str) -> ZoneInfo:
    with files("tzdata").joinpath("zoneinfo", name).open("rb") as file:
        return ZoneInfo.from_file(file, name)


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


@given(MOMENTS, st.sampled_from(NAMES))
def test_clocks_of_a_zone(moment: datetime, name: str) -> None:
    judge = moment.astimezone(zone_of_judge(name))
    shown = in_zone(micros(moment), time_zones.zone(name))
    assert shown.replace(tzinfo=None) == judge.replace(tzinfo=None)
    assert dates.offset_seconds(shown) == judge.utcoffset().total_seconds()  # type: ignore[union-attr]
    assert instant_of(shown) == micros(moment)


@given(MOMENTS, st.sampled_from(NAMES))
@example(datetime(1900, 1, 1, tzinfo=UTC), "Africa/Monrovia")
def test_rfc3339_is_read_back(moment: datetime, name: str) -> None:
    judge = moment.astimezone(zone_of_judge(name)).isoformat()
    text = dates.rfc3339(in_zone(micros(moment), time_zones.zone(name)))
    assert datetime.fromisoformat(text).isoformat() == judge
    assert parse_date(text) == micros(moment)


def changes(name: str, year: int) -> Iterator[datetime]:
    """The first second, UTC, of each offset that the zone takes up in the year."""
    zone = zone_of_judge(name)

    def offset(moment: datetime) -> timedelta:
        found = moment.astimezone(zone).utcoffset()
        assert found is not None
        return found

    weeks = [datetime(year, 1, 1, tzinfo=UTC) + timedelta(weeks=week) for week in range(53)]
    for before, after in pairwise(weeks):
        if offset(before) == offset(after):
            continue
        while after - before > timedelta(seconds=1):
            middle = before + timedelta(seconds=(after - before) // timedelta(seconds=2))
            before, after = (middle, after) if offset(middle) == offset(before) else (before, middle)
        yield after


@given(st.sampled_from(NAMES), YEARS, st.integers(-7300, 7300))
@example("Europe/Berlin", 2026, 0)
@example("Australia/Lord_Howe", 2026, -1)
@example("Pacific/Apia", 2011, 3600)
def test_local_time_around_a_change_of_the_clocks(name: str, year: int, seconds: int) -> None:
    """The instant of a local time is the first one at which clocks show it; no other exists in a gap."""
    zone = zone_of_judge(name)
    for change in changes(name, year):
        for wall in (change - timedelta(seconds=1), change):
            local = wall.astimezone(zone).replace(tzinfo=None) + timedelta(seconds=seconds)
            around = (change + timedelta(hours=hours) for hours in (-30, -1, 0, 1, 30))
            offsets = {
                moment.astimezone(zone).utcoffset() for moment in (change - timedelta(seconds=1), *around)
            }
            candidates = [local.replace(tzinfo=UTC) - offset for offset in offsets if offset is not None]
            true = [c for c in candidates if c.astimezone(zone).replace(tzinfo=None) == local]
            if true:
                assert instant_in_zone(local, time_zones.zone(name)) == micros(min(true))
            else:
                with pytest.raises(DateError, match="does not exist"):
                    instant_in_zone(local, time_zones.zone(name))


@given(MOMENTS)
@example(EPOCH + timedelta(microseconds=1))
@example(EPOCH - timedelta(microseconds=1))
def test_a_timestamp_keeps_microseconds(moment: datetime) -> None:
    instant = micros(moment)
    assert instant_from_number(instant_to_number(instant)) == instant
    assert isinstance(instant_to_number(instant), int) is (instant % SECOND == 0)


@given(ANY_MOMENTS)
def test_a_timestamp_keeps_milliseconds_at_any_time(moment: datetime) -> None:
    instant = micros(moment) // 1000 * 1000
    assert instant_from_number(instant_to_number(instant)) == instant


def test_the_ends_of_time() -> None:
    assert (instant_from_number(FIRST // SECOND), instant_from_number(LAST // SECOND)) == (
        FIRST,
        LAST // SECOND * SECOND,
    )
    for beyond in (FIRST // SECOND - 1, LAST // SECOND + 1, 2**63 - 1, -(2**63), 1e300, -1e300):
        with pytest.raises(DateError, match="out of range"):
            instant_from_number(beyond)
    for strange in (float("nan"), float("inf"), float("-inf")):
        with pytest.raises(DateError, match="finite"):
            instant_from_number(strange)
    with pytest.raises(DateError, match="out of range"):
        in_zone(LAST, time_zones.zone("Asia/Tokyo"))
    with pytest.raises(DateError, match="out of range"):
        instant_in_zone(datetime.min, time_zones.zone("Asia/Tokyo"))


@given(ANY_MOMENTS)
def test_a_date_on_the_calendar(moment: datetime) -> None:
    naive = moment.replace(tzinfo=None, microsecond=0)
    assert on_calendar(*naive.timetuple()[:6]) == naive


@given(st.tuples(*[st.integers(-5, 70)] * 6))
def test_there_is_no_other_date(parts: tuple[int, int, int, int, int, int]) -> None:
    try:
        expected = datetime(*parts)
    except ValueError:
        with pytest.raises(NoSuchDate):
            on_calendar(*parts)
    else:
        assert on_calendar(*parts) == expected


@given(ANY_MOMENTS, st.sampled_from(["T", " ", "t"]), st.sampled_from(["", "Z", "z", "+00:00", " +0000"]))
def test_dates_in_text(moment: datetime, separator: str, zulu: str) -> None:
    seconds = micros(moment) // SECOND * SECOND
    assert parse_date(moment.isoformat(separator).removesuffix("+00:00") + zulu) == micros(moment)
    day = seconds - seconds % (86_400 * SECOND)
    assert parse_date(f"{moment.year}/{moment.month}/{moment.day}") == day
    numbers = (
        f"year {moment.year}, {moment.month} {moment.day}; {moment.hour}h {moment.minute}m {moment.second}s"
    )
    assert parse_date(numbers) == seconds


@given(st.text(st.characters(codec="utf-8") | st.sampled_from("0123456789-:T.Z+ ٣"), max_size=40))
@example("0" * 5000 + "1-1-1")
@example("0001-01-01T00:00:00+01:00")
@example("2026-01-01T00:00:00+24:00")
@example("²026-1-1")
def test_any_text_is_a_date_or_none(text: str) -> None:
    with suppress(NoSuchDate):
        assert FIRST <= parse_date(text) <= LAST


#: The codes that mean the same to Python, in years of four digits.
SHARED = "Y m d H M S A a B b j y I p z s T F e Z".split()


@given(MOMENTS, st.sampled_from(NAMES), st.lists(st.sampled_from([*SHARED, "%"]), min_size=1, max_size=6))
def test_formats_against_strftime(moment: datetime, name: str, codes: list[str]) -> None:
    judge = moment.astimezone(zone_of_judge(name))
    shown = in_zone(micros(moment), time_zones.zone(name))
    for code in codes:
        # Python's `%s` takes the parts for local time of the machine.
        expected = str(micros(moment) // SECOND) if code == "s" else judge.strftime("%" + code)
        assert dates.formatted(shown, "%" + code) == expected
    text = "é".join(f"%{code}" for code in codes)
    assert dates.formatted(shown, text) == "é".join(dates.formatted(shown, f"%{code}") for code in codes)


@given(st.text("%YmQ:z.369f-é\n", max_size=12))
def test_any_format_is_written_or_refused(format: str) -> None:
    with suppress(DateError):
        assert ("%" in format) or dates.formatted(EPOCH, format) == format


@pytest.mark.parametrize(
    "name", ["", "utc", "europe/berlin", "Europe", "../zones", "Europe/Berlin ", "localtime"]
)
def test_no_other_name_is_a_zone(name: str) -> None:
    with pytest.raises(DateError, match="unknown timezone"):
        time_zones.zone(name)


UNITS = st.sampled_from([1, dates.SECOND_MS, dates.MINUTE_MS, dates.HOUR_MS, dates.DAY_MS])
MILLISECONDS = st.integers(-(2**63), 2**63 - 1) | st.integers(-200_000_000, 200_000_000)
_SIZES = {"d": dates.DAY_MS, "h": dates.HOUR_MS, "m": dates.MINUTE_MS, "s": dates.SECOND_MS, "ms": 1}


@given(st.integers(-(2**63), 2**63 - 1) | st.floats(-1e6, 1e6), UNITS)
@example(0.5, 1)
@example(-2.5, 1)
@example(0.4999999999999999, 1)
def test_numbers_of_units(number: float, unit: int) -> None:
    # A float is multiplied as one, then rounded.
    exact = Decimal(number * unit).quantize(Decimal(1), ROUND_HALF_UP) if abs(number) < 1e6 else number * unit
    if -(2**63) <= exact < 2**63:
        assert dates.length_of(number, unit) == exact
    else:
        with pytest.raises(DateError, match="duration overflow"):
            dates.length_of(number, unit)


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_a_number_that_is_not_finite_is_no_length(number: float) -> None:
    with pytest.raises(DateError, match="finite"):
        dates.length_of(number, 1)


@pytest.mark.parametrize("number", [1e19, -1e19, 2.0**63, 1e308])
def test_a_float_beyond_an_int_is_no_length(number: float) -> None:
    with pytest.raises(DateError, match="duration overflow"):
        dates.length_of(number, 1)


@given(MILLISECONDS)
def test_whole_seconds_are_cut_off(ms: int) -> None:
    assert dates.whole_seconds(ms) == int(Decimal(ms) / 1000)


@given(MILLISECONDS)
def test_what_people_read_adds_up_to_no_more_than_the_length(ms: int) -> None:
    text = dates.length_for_people(ms)
    parts = text.removeprefix("-").split(" ")
    assert 1 <= len(parts) <= 3
    units = [part.lstrip("0123456789") for part in parts]
    total = sum(int(part.removesuffix(unit)) * _SIZES[unit] for part, unit in zip(parts, units, strict=True))
    smallest = _SIZES[units[-1]]
    assert text.startswith("-") is (ms < 0)
    assert 0 <= abs(ms) - total < smallest or ms == 0
    assert [_SIZES[unit] for unit in units] == sorted((_SIZES[unit] for unit in units), reverse=True)
