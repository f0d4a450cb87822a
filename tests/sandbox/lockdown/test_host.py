"""Which policy fits this interpreter."""

import sys
import sysconfig
from pathlib import Path

import pytest

import sanderling
from sanderling.sandbox.lockdown import policy_for


def beneath(path: str | Path, listed: tuple[str, ...]) -> bool:
    found = Path(path).resolve()
    return any(found.is_relative_to(Path(entry).resolve()) for entry in listed)


def test_the_interpreter_and_its_packages_can_be_read(tmp_path: Path) -> None:
    policy = policy_for(str(tmp_path))

    assert beneath(sysconfig.get_path("stdlib"), policy.read)
    assert beneath(sysconfig.get_path("purelib"), policy.read)
    assert beneath(sys.modules["pytest"].__file__ or "", policy.read)
    assert all(Path(path).exists() for path in policy.read)


def test_the_source_of_this_editable_install_cannot(tmp_path: Path) -> None:
    source = Path(str(sanderling.__file__)).resolve()
    if "site-packages" in source.parts:
        pytest.skip("not an editable install")

    assert not beneath(source, policy_for(str(tmp_path)).read)


def test_only_the_work_folder_and_the_null_device_can_be_written(tmp_path: Path) -> None:
    link = tmp_path / "link"
    (tmp_path / "work").mkdir()
    link.symlink_to("work")
    policy = policy_for(str(link))

    assert policy.workdir == str(tmp_path.resolve() / "work")
    assert policy.write == (policy.workdir, "/dev/null")


def test_further_paths(tmp_path: Path) -> None:
    assert str(tmp_path / "data") in policy_for("/", extra_read=[str(tmp_path / "data")]).read


def test_a_quota_needs_namespaces(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="workdir_bytes needs namespaces"):
        policy_for(str(tmp_path), namespaces=False, workdir_bytes=1)
