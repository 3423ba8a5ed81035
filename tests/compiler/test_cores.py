"""The limit of a control group counts as cores, whatever the version and wherever a container mounts it."""

import pytest

import raybox as rb
from raybox.compiler import cores as cores_of
from raybox.compiler.cores import cores, read_limit
from raybox.threads import chunks


def group(root, name, **files):
    folder = root / name if name else root
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        (folder / file.replace("__", ".")).write_text(text)


def limit(tmp_path, own):
    (tmp_path / "own").write_text(own)
    return read_limit(tmp_path / "groups", tmp_path / "own")


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),
        ("1000 100000\n", 1),
        ("max 100000\n", None),
        ("", None),
    ],
)
def test_version_2(tmp_path, text, cores):
    group(tmp_path / "groups", "", cpu__max=text)
    assert limit(tmp_path, "0::/\n") == cores


def test_the_least_limit_of_a_group_and_those_above(tmp_path):
    group(tmp_path / "groups", "a", cpu__max="300000 100000")
    group(tmp_path / "groups", "a/b", cpu__max="max 100000")
    group(tmp_path / "groups", "a/b/c", cpu__max="800000 100000")
    assert limit(tmp_path, "0::/a/b/c\n") == 3
    assert limit(tmp_path, "0::/\n") is None


@pytest.mark.parametrize("mount", ["cpu,cpuacct", "cpu"])
@pytest.mark.parametrize("place", ["", "docker/7"])
@pytest.mark.parametrize(("quota", "cores"), [("-1", None), ("250000", 3)])
def test_version_1(tmp_path, mount, place, quota, cores):
    """A container sees its own group at the top, or at the host's path."""
    files = {"cpu__cfs_quota_us": quota + "\n", "cpu__cfs_period_us": "100000\n"}
    group(tmp_path / "groups" / mount, place, **files)
    own = "4:memory:/docker/7\n3:cpu,cpuacct:/docker/7\n2:cpuset:/\n0::/docker/7\n"
    assert limit(tmp_path, own) == cores


def test_no_control_groups(tmp_path):
    assert read_limit(tmp_path, tmp_path / "none") is None


def test_cores_obey_the_limit_which_is_read_once(monkeypatch):
    read = []
    monkeypatch.setattr(cores_of, "read_limit", lambda *_: read.append(1) or 1)
    cores_of.cpu_limit.cache_clear()
    try:
        assert [cores() for _ in range(3)] == [1, 1, 1]
    finally:
        cores_of.cpu_limit.cache_clear()
    assert read == [1]


def test_a_query_of_one_ray_counts_no_cores(monkeypatch):
    scene, ray = rb.Scene(rb.Boxes([2, -1, -1], [3, 1, 1])), rb.Rays([0, 0, 0], [1, 0, 0])
    monkeypatch.setattr(chunks, "cores", lambda: pytest.fail("the cores are counted"))
    assert scene.nearest(ray).index == 0
    with pytest.raises(rb.InvalidInput, match="workers must be"):
        scene.nearest(ray, workers=0)
