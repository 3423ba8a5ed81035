"""The script whose types mypy checks also runs."""

import raybox as rb
import user_script


def test_the_script_runs(tmp_path):
    boxes, rays = user_script.make()
    rb.save(tmp_path / "boxes.csv", boxes)
    rb.save(tmp_path / "rays.csv", rays)
    assert user_script.pick(tmp_path) == [0, 1]
    assert user_script.sweep_lengths(rb.Scene(boxes), rays) == {0: 3.0, 2: 2.0}
    assert user_script.of_files(tmp_path / "boxes.csv") == (2, 2)
    assert user_script.camera().shape == (3, 3)
