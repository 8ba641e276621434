"""Where import paths lead: files, the library, installed packages. Spec: 06 §3."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harnpy.vm import modules
from harnpy.world.files import RealFiles

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes a file of the project, by its path and text."""

    def make(path: str, text: str = "") -> Path:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file.resolve()

    make("app/.git/HEAD")
    make("app/src/main.harn")
    return make


@pytest.fixture
def find(tmp_path: Path) -> Callable[..., str | None]:
    """The file that an import means in ``app/src``."""

    def find(path: str, directory: str = "app/src") -> str | None:
        place = modules.find_module(RealFiles(), path, str(tmp_path / directory))
        return place and place.name

    return find


def test_a_file_comes_before_the_same_name_with_an_extension(make: Make, find) -> None:
    make("app/src/a.harn")
    plain = make("app/src/a")
    assert find("a") == str(plain)


def test_the_extension_is_put_on_only_where_there_is_none(make: Make, find) -> None:
    make("app/src/a.txt.harn")
    assert find("a.txt") is None


def test_parents_and_absolute_paths(make: Make, find) -> None:
    file = str(make("app/a.harn"))
    assert find("../a") == find(file) == find(file.removesuffix(".harn")) == file


def test_a_link_is_the_file_it_leads_to(make: Make, find, tmp_path: Path) -> None:
    file = make("app/src/real.harn")
    (tmp_path / "app/src/link.harn").symlink_to("real.harn")
    assert find("link") == str(file)


def test_a_directory_stands_in_the_way_of_a_file(make: Make, find, tmp_path: Path) -> None:
    make("app/src/a/b.harn")
    make("app/src/a.harn")
    assert find("a") == str((tmp_path / "app/src/a").resolve())


def test_bundled_modules_are_never_looked_for_in_files(make: Make, find) -> None:
    make("app/src/std/mine.harn")
    make("app/src/std/context.harn")
    assert find("std/mine") is None
    assert find("std/context") == "<stdlib>/context.harn"
    assert find("std/context.harn") is None
    assert find("std/") is None


def test_a_package_is_its_lib_file(make: Make, find) -> None:
    lib = make("app/.harn/packages/acme/lib.harn")
    assert find("acme") == find("./acme") == find("acme/.") == str(lib)


def test_a_file_of_a_package(make: Make, find) -> None:
    make("app/.harn/packages/acme/lib.harn")
    tools = make("app/.harn/packages/acme/src/tools.harn")
    inner = make("app/.harn/packages/acme/inner/lib.harn")
    assert find("acme/src/tools") == find("acme/src/tools.harn") == str(tools)
    assert find("acme/inner") == str(inner)


def test_a_package_of_one_file(make: Make, find) -> None:
    small = make("app/.harn/packages/small.harn")
    assert find("small") == str(small)


def test_a_directory_of_a_package_without_lib_file(make: Make, find, tmp_path: Path) -> None:
    make("app/.harn/packages/acme/readme.txt")
    assert find("acme") == str((tmp_path / "app/.harn/packages/acme").resolve())


def test_exports_name_files_of_a_package(make: Make, find) -> None:
    make("app/.harn/packages/acme/harn.toml", '[exports]\ntools = "src/tools.harn"\n"a/b" = "deep"\n')
    tools = make("app/.harn/packages/acme/src/tools.harn")
    deep = make("app/.harn/packages/acme/deep/lib.harn")
    assert find("acme/tools") == str(tools)
    assert find("acme/a/b") == str(deep)
    assert find("acme/other") is None


def test_a_file_of_a_package_comes_before_its_exports(make: Make, find) -> None:
    make("app/.harn/packages/acme/harn.toml", '[exports]\ntools = "src/tools.harn"\n')
    make("app/.harn/packages/acme/src/tools.harn")
    plain = make("app/.harn/packages/acme/tools.harn")
    assert find("acme/tools") == str(plain)


@pytest.mark.parametrize("manifest", ["[exports", "exports = 3", "[exports]\ntools = 7\n"])
def test_exports_that_make_no_sense_are_none(make: Make, find, manifest: str) -> None:
    make("app/.harn/packages/acme/harn.toml", manifest)
    assert find("acme/tools") is None


def test_nothing_outside_a_package_can_be_reached(make: Make, find, tmp_path: Path) -> None:
    make("app/.harn/packages/acme/harn.toml", '[exports]\nout = "../../../secret.harn"\n')
    make("app/secret.harn")
    (tmp_path / "app/.harn/packages/acme/link.harn").symlink_to("../../../secret.harn")
    assert find("acme/out") is None
    assert find("acme/link") is None
    assert find("acme/../../../secret", "app/src/deep") is None
    assert find("acme\\lib") is None


def test_a_package_may_be_a_link_itself(make: Make, find, tmp_path: Path) -> None:
    lib = make("elsewhere/lib.harn")
    packages = tmp_path / "app/.harn/packages"
    packages.mkdir(parents=True)
    (packages / "acme").symlink_to(tmp_path / "elsewhere")
    assert find("acme") == str(lib)


def test_a_file_of_the_project_comes_before_a_package(make: Make, find) -> None:
    make("app/.harn/packages/acme/lib.harn")
    mine = make("app/src/acme.harn")
    assert find("acme") == str(mine)


def test_the_nearest_packages_come_first(make: Make, find) -> None:
    make("app/.harn/packages/acme/lib.harn")
    near = make("app/src/.harn/packages/acme/lib.harn")
    assert find("acme", "app/src/deep") == str(near)


def test_packages_are_not_looked_for_above_the_repository(make: Make, find) -> None:
    make(".harn/packages/acme/lib.harn")
    assert find("acme") is None
    assert find("acme", "other") is not None
