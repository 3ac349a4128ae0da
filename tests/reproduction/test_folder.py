"""The folder of a run: what is cleared and what is not, and who may work in it."""

import multiprocessing
from pathlib import Path

import pytest

from saferank.experiments.run_folder import FolderError
from saferank.instances.embedded import embedded_instances
from saferank.reproduction.folder import Folder

INSTANCES = embedded_instances(2, models=("cm",))


def begun(path: Path) -> Folder:
    folder = Folder(path)
    folder.begin_with({"seed": 1}, INSTANCES, "planted", {"name": "log"})
    return folder


PIECE = "000001-0123456789abcdef.parquet"


def test_what_was_begun_can_be_gone_on_with(tmp_path: Path) -> None:
    instances, log = begun(tmp_path).resumed({"seed": 1})
    assert [instance.id for instance in instances] == [instance.id for instance in INSTANCES]
    assert log == {"name": "log"}


def test_clearing_removes_every_file_of_a_run_and_no_other(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    folder.pieces.mkdir()
    for file in (*folder.files, folder.pieces / PIECE):
        file.touch()
    mine = [tmp_path / "notes.txt", folder.pieces / "mine.txt"]
    for file in mine:
        file.write_text("mine")
    folder.clear()
    assert folder.in_use == []
    assert [file.read_text() for file in mine] == ["mine", "mine"]


def test_a_folder_of_pieces_that_is_empty_goes_with_them(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.pieces.mkdir()
    (folder.pieces / PIECE).touch()
    (folder.pieces / f".{PIECE}.0.tmp").touch()
    folder.remove_pieces()
    assert list(tmp_path.iterdir()) == []


def test_pieces_that_nobody_began_are_not_gone_on_with(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.pieces.mkdir()
    (folder.pieces / PIECE).write_text("of a run whose experiment.json is gone")
    begun(tmp_path)
    assert not folder.pieces.exists()


def _try_to_work(path: Path, said: "multiprocessing.SimpleQueue[str]") -> None:
    try:
        with Folder(path).reserved():
            said.put("got in")
    except FolderError as problem:
        said.put(str(problem))


def test_two_processes_do_not_work_in_the_same_folder(tmp_path: Path) -> None:
    spawning = multiprocessing.get_context("spawn")
    said = spawning.SimpleQueue()
    with Folder(tmp_path).reserved():
        other = spawning.Process(target=_try_to_work, args=(tmp_path, said))
        other.start()
        other.join(120)
        assert not said.empty()
        assert said.get() == f"{tmp_path}: another process is at work there; wait for it, or name another folder"
    with Folder(tmp_path).reserved():
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_was_just_given_up_is_not_taken_for_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def late(descriptor: int, how: int) -> None:
        (tmp_path / ".in-use").unlink()  # by the process that had it, between our opening and our locking

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(FolderError, match="another process"), Folder(tmp_path).reserved():
        pass


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"version": 1, "source": "x", "asked": [], "log": {}, "instances": "x"}', '{"version": "0"}', ""],
)
def test_a_damaged_experiment_is_refused_in_a_sentence(tmp_path: Path, content: str) -> None:
    folder = Folder(tmp_path)
    folder.experiment.write_text(content, encoding="utf-8")
    with pytest.raises(FolderError, match=r"experiment\.json: .*start again with overwrite=True"):
        folder.resumed({})
