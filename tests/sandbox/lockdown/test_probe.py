"""What the machine offers is found without touching the process that asks."""

from pathlib import Path

from sanderling.sandbox.lockdown import policy_for, probe


def test_each_layer_has_a_name_and_a_detail() -> None:
    layers = probe()

    assert [layer.name for layer in layers if layer.required] == ["machine", "landlock", "seccomp"]
    assert [layer.name for layer in layers if not layer.required] == ["namespaces", "pid namespace"]
    assert all(layer.detail for layer in layers)


def test_asking_changes_nothing() -> None:
    def state() -> list[str]:
        status = Path("/proc/self/status").read_text().splitlines()
        namespaces = [str(path.readlink()) for path in sorted(Path("/proc/self/ns").iterdir())]
        kept = ("Seccomp", "NoNewPrivs", "Cap")
        return [line for line in status if line.startswith(kept)] + [*namespaces, str(Path.cwd())]

    before = state()
    probe()

    assert state() == before


def test_auto_means_what_the_machine_offers(tmp_path: Path) -> None:
    offered = {layer.name: layer.available for layer in probe()}["namespaces"]

    assert policy_for(str(tmp_path)).namespaces is offered
    assert policy_for(str(tmp_path), namespaces=False).namespaces is False
