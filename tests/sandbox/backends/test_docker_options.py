"""Which options of a container may be set, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest

from sanderling.sandbox import create_interpreter
from sanderling.sandbox.backends._docker_options import ContainerOptions, size


def options(allow_weaker: bool = False, **extra: Any) -> ContainerOptions:
    return ContainerOptions(1 << 30, None, 64, 256 << 20, 500, extra, allow_weaker)


@pytest.mark.parametrize(
    ("text", "bytes_"), [("5", 5), (7, 7), ("1k", 1024), ("2M", 2 << 20), ("3g", 3 << 30)]
)
def test_sizes(text: str | int, bytes_: int) -> None:
    assert size(text) == bytes_


@pytest.mark.parametrize("text", ["", "g", "1.5g", "-1", "1gb", "1 g", "1g --privileged"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        create_interpreter("docker", container_run_kwargs={"mem_limit": text})


@pytest.mark.parametrize(
    "extra",
    [
        {"privileged": True},
        {"network": "bridge"},
        {"network": "host"},
        {"network_mode": "host"},
        {"cap_add": ["SYS_ADMIN"]},
        {"cap_drop": []},
        {"security_opt": ["seccomp=unconfined"]},
        {"read_only": False},
        {"user": "root"},
        {"userns": "host"},
        {"pid": "host"},
        {"pid_mode": "host"},
        {"ipc": "host"},
        {"device": "/dev/kvm"},
        {"gpus": "all"},
        {"publish": "80:80"},
        {"ports": {"80": 80}},
        {"mount": "type=bind,source=/,target=/host"},
        {"tmpfs": "/work:exec"},
        {"volumes_from": "other"},
        {"volume": "/var/run/docker.sock:/var/run/docker.sock"},
        {"volumes": ["/run/user/1000/docker.sock:/s:ro"]},
        {"volumes": ["/tmp/my-docker.sock:/s:ro"]},
        {"volumes": ["/:/host:ro"]},
        {"volumes": ["/data/../run:/host:ro"]},
        {"volumes": ["//run:/host:ro"]},
        {"volumes": ["/data/:/data"]},
        {"volumes": ["/data:/data:rw"]},
        {"volumes": {"/data": {"bind": "/data"}}},
        {"volumes": {"/var": {"bind": "/data", "mode": "ro"}}},
    ],
    ids=str,
)
def test_what_may_weaken_the_walls_is_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"may weaken the walls .* allow_weaker=True"):
        create_interpreter("docker", container_run_kwargs=extra)
    create_interpreter("docker", container_run_kwargs=extra, allow_weaker=True).close()


@pytest.mark.parametrize("name", ["", "-v", "privileged=true", "v --privileged", "V"])
def test_what_is_no_option_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no option of docker run"):
        options(allow_weaker=True, **{name: True})


def test_the_walls_are_options() -> None:
    flags = options().flags("one")
    assert {
        "--rm",
        "--name=one",
        "--network=none",
        "--ipc=none",
        "--read-only",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        "--user=65534:65534",
        f"--memory={1 << 30}",
        f"--memory-swap={1 << 30}",
        "--pids-limit=64",
        "--label=sanderling",
    } <= set(flags)
    assert not any(flag.startswith(("--cpus", "--volume", "--publish")) for flag in flags)


def test_options_are_written_as_docker_reads_them() -> None:
    given = options(
        environment={"A": "1 2"},
        labels=["mine"],
        cpuset_cpus="0,1",
        nano_cpus=2,
        mem_limit="2g",
        volumes={"/data": {"bind": "/in", "mode": "ro"}, "named": "/more:ro"},
        network="none",
    )
    flags = given.flags("one")
    assert {"--env=A=1 2", "--label=mine", "--label=sanderling", "--cpuset-cpus=0,1"} < set(flags)
    assert {"--memory=2g", "--memory-swap=2g", "--cpus=2"} < set(flags)
    assert {"--volume=/data:/in:ro", "--volume=named:/more:ro"} < set(flags)
    assert given.memory_bytes == 2 << 30
    assert given.volumes() == ["/in", "/more"]


def test_weaker_options_take_the_place_of_the_walls() -> None:
    flags = options(allow_weaker=True, network="bridge", read_only=False, gpus="all").flags("one")
    assert {"--network=bridge", "--read-only=false", "--gpus=all"} < set(flags)
    assert "--network=none" not in flags


@pytest.mark.parametrize(
    "settings",
    [
        {"image": "--privileged"},
        {"image": "a b"},
        {"packages": "numpy"},
        {"packages": ["--index-url=http://elsewhere"]},
        {"dockerfile_content": "FROM a", "image": "b"},
        {"dockerfile_content": "FROM a", "packages": ["b"]},
    ],
    ids=str,
)
def test_what_makes_no_image_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"image|packages"):
        create_interpreter("docker", **settings)
