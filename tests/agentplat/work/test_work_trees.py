"""Work trees with the real git command: apart from the linked checkout, made again after a kill, and removed without a loss."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from agentplat.domain.access import Access, Role
from agentplat.domain.errors import Conflict, InvalidInput, RunFailed
from agentplat.domain.modes import Mode
from agentplat.domain.runs import Run
from agentplat.domain.spaces import Space
from agentplat.domain.workspaces import KeptTree, Repository, Workspace
from agentplat.store.sql import open_store
from agentplat.usecases.lease_run import Held
from agentplat.worktrees.folder import FolderWorkTrees

from tests.agentplat.processes import END_S, environment
from tests.agentplat.work_records import PLATFORM, Office
from tests.agentplat.world import wait_until

pytestmark = pytest.mark.promise("W-10")

ALICE = "acme/platform:alice"
HOST = "here"


def git(folder: Path, *arguments: str) -> str:
    """What git prints, as a person calls it."""
    who = ["-c", "user.name=ana", "-c", "user.email=ana@acme.example", "-c", "safe.directory=*"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, encoding="utf-8", timeout=END_S, check=True)
    return done.stdout.strip()


def repository(folder: Path) -> Path:
    """A repository with two commits, something staged and something that is not."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    for text in ("one", "two"):
        (folder / "file.txt").write_text(text, encoding="utf-8")
        (folder / "sub").mkdir(exist_ok=True)
        (folder / "sub" / "run.sh").write_text("#!/bin/sh\n", encoding="utf-8")
        (folder / "sub" / "run.sh").chmod(0o755)
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", text)
    (folder / "file.txt").write_text("being written", encoding="utf-8")
    (folder / "staged.txt").write_text("staged", encoding="utf-8")
    git(folder, "add", "staged.txt")
    return folder


def _untouched(folder: Path) -> tuple[object, ...]:
    """All of a checkout that must stay: its HEAD, its index and its files."""
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }
    return ((folder / ".git" / "HEAD").read_bytes(), (folder / ".git" / "index").read_bytes(), files)


class Scene:
    """An office whose workspace links a repository."""

    def __init__(self, office: Office, folder: Path) -> None:
        self.linked = repository(folder / "linked")
        self.trees = FolderWorkTrees(folder / "trees", HOST)
        self.office = replace(office, trees=self.trees)
        self.ana: Access = self.office.person("acme:ana", (Role.ADMIN, "*"))
        self.office.agent(ALICE)
        self.workspace: Workspace = self.office.workspace(self.ana)
        self.repository: Repository = self.office.together.workspaces.link(self.ana, self.workspace.id, "site", str(self.linked))

    def space(self, mode: Mode = Mode.CHAT, name: str = "Spring release!") -> Space:
        """A space of the workspace."""
        return self.office.space(self.ana, self.workspace, name, mode)

    def held(self, space: Space) -> Held:
        """A run in the space, with its work trees."""
        return self.placed(self.office.handed(self.ana, space, "@alice go"))

    def placed(self, run: Run) -> Held:
        """The run with its work trees."""
        return self.office.acting.lease.place(self.office.acting.lease.prepare(run))

    def remove(self, space: Space) -> tuple[str, ...]:
        """Remove the space."""
        return self.office.together.spaces.remove(self.ana, space.workspace_id, space.id)

    def branches(self) -> list[str]:
        """The branches of the linked repository."""
        return git(self.linked, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()


@pytest.fixture
def scene(desk: Office, tmp_path: Path) -> Scene:
    """A scene on SQLite."""
    return Scene(desk, tmp_path)


@pytest.mark.promise("W-5")
def test_each_space_works_on_a_branch_of_its_own_apart_from_the_linked_checkout(scene: Scene) -> None:
    before = _untouched(scene.linked)
    one, two = scene.space(), scene.space(name="מרחב")
    [first] = scene.held(one).trees
    [second] = scene.held(two).trees
    assert (first.name, first.branch, second.branch) == (
        "site", f"agentplat/space-{one.id}-spring-release", f"agentplat/space-{two.id}-work"
    )  # fmt: skip
    for tree in (first, second):
        assert (Path(tree.path) / "file.txt").read_text(encoding="utf-8") == "two"
        assert not (Path(tree.path) / "staged.txt").exists()
        assert git(Path(tree.path), "symbolic-ref", "--short", "HEAD") == tree.branch
    (Path(first.path) / "file.txt").write_text("three", encoding="utf-8")
    git(Path(first.path), "commit", "--quiet", "--all", "--message", "three")
    assert (Path(second.path) / "file.txt").read_text(encoding="utf-8") == "two"
    assert _untouched(scene.linked) == before
    # The next run of the space goes on in the same tree.
    assert scene.held(one).trees == (first,)
    assert (Path(first.path) / "file.txt").read_text(encoding="utf-8") == "three"
    assert scene.branches() == sorted(["main", str(first.branch), str(second.branch)])


@pytest.mark.promise("W-7")
@pytest.mark.parametrize("mode", [Mode.PLAN, Mode.ORCHESTRATE, Mode.REVIEW])
def test_outside_a_chat_the_files_can_only_be_read_and_stay_as_they_were(scene: Scene, mode: Mode) -> None:
    before = _untouched(scene.linked)
    space = scene.space(mode)
    held = scene.held(space)
    [tree] = held.trees
    folder = Path(tree.path)
    assert (tree.branch, (folder / "file.txt").read_text(encoding="utf-8")) == (None, "two")
    assert os.access(folder / "sub" / "run.sh", os.X_OK)
    for path in (folder, *folder.rglob("*")):
        assert not path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH), path
    with pytest.raises(subprocess.CalledProcessError):
        git(folder, "rev-parse", "--git-dir")
    git(scene.linked, "commit", "--quiet", "--all", "--message", "later")
    assert scene.placed(held.run).trees == (tree,)
    [newer] = scene.held(space).trees
    assert (Path(newer.path) / "file.txt").read_text(encoding="utf-8") == "being written"
    assert before[0] == (scene.linked / ".git" / "HEAD").read_bytes()
    assert scene.branches() == ["main"]


def test_a_plan_reads_what_the_chat_of_the_same_space_has_committed(scene: Scene) -> None:
    space = scene.space()
    [tree] = scene.held(space).trees
    (Path(tree.path) / "file.txt").write_text("three", encoding="utf-8")
    git(Path(tree.path), "commit", "--quiet", "--all", "--message", "three")
    scene.office.together.spaces.set_mode(scene.ana, space.workspace_id, space.id, Mode.PLAN)
    [read] = scene.held(space).trees
    assert (Path(read.path) / "file.txt").read_text(encoding="utf-8") == "three"


def _end_all(scene: Scene) -> None:
    for run in scene.office.all_runs():
        if not run.ended:
            scene.office.finish(run)


def test_removing_a_space_takes_its_tree_and_a_branch_whose_commits_are_elsewhere_too(scene: Scene) -> None:
    before = _untouched(scene.linked)
    space = scene.space()
    held = scene.held(space)
    with pytest.raises(Conflict, match=f"runs {held.run.id} still work in the space"):
        scene.remove(space)
    _end_all(scene)
    assert scene.remove(space) == ()
    assert not Path(held.trees[0].path).exists()
    assert scene.branches() == ["main"]
    assert git(scene.linked, "worktree", "list", "--porcelain").count("worktree ") == 1
    assert _untouched(scene.linked) == before
    with scene.office.store.reading() as work:
        assert work.workspaces.trees(space.id) == []


def test_commits_that_are_nowhere_else_and_changes_that_nobody_committed_stay_on_the_branch(scene: Scene) -> None:
    space = scene.space()
    [tree] = scene.held(space).trees
    folder = Path(tree.path)
    (folder / "new.txt").write_text("committed", encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "new")
    (folder / "file.txt").write_text("not committed", encoding="utf-8")
    (folder / "untracked.txt").write_text("not even added", encoding="utf-8")
    _end_all(scene)
    assert scene.remove(space) == (tree.branch,)
    assert not folder.exists()
    for name, text in (("new.txt", "committed"), ("file.txt", "not committed"), ("untracked.txt", "not even added")):
        assert git(scene.linked, "show", f"{tree.branch}:{name}") == text


def test_commits_that_no_branch_has_get_one(scene: Scene) -> None:
    space = scene.space()
    [tree] = scene.held(space).trees
    folder = Path(tree.path)
    git(folder, "checkout", "--quiet", "--detach")
    (folder / "lost.txt").write_text("on no branch", encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "lost")
    commit = git(folder, "rev-parse", "HEAD")
    _end_all(scene)
    scene.remove(space)
    assert git(scene.linked, "for-each-ref", f"--contains={commit}", "--format=%(refname:short)") == f"{tree.branch}-{commit[:12]}"


def test_a_branch_that_was_merged_is_deleted_and_one_that_was_not_stays(scene: Scene) -> None:
    space = scene.space()
    [tree] = scene.held(space).trees
    folder = Path(tree.path)
    (folder / "new.txt").write_text("new", encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "new")
    git(scene.linked, "branch", "release", str(tree.branch))
    _end_all(scene)
    assert scene.remove(space) == ()
    assert scene.branches() == ["main", "release"]


def test_a_branch_that_somebody_is_on_stays(scene: Scene) -> None:
    space = scene.space()
    [tree] = scene.held(space).trees
    _end_all(scene)
    git(Path(tree.path), "checkout", "--quiet", "--detach")
    git(scene.linked, "reset", "--quiet", "--hard")
    git(scene.linked, "checkout", "--quiet", str(tree.branch))
    assert scene.remove(space) == (tree.branch,)
    assert git(scene.linked, "symbolic-ref", "--short", "HEAD") == tree.branch


def test_a_worker_takes_away_what_another_process_left_of_a_removed_space(scene: Scene) -> None:
    space = scene.space()
    [tree] = scene.held(space).trees
    _end_all(scene)
    elsewhere = replace(scene.office, trees=FolderWorkTrees(scene.office.folder / "other", "another host"))
    elsewhere.together.spaces.remove(scene.ana, space.workspace_id, space.id)
    elsewhere.acting.tidy()
    assert Path(tree.path).exists()
    scene.office.acting.tidy()
    assert not Path(tree.path).exists()
    with scene.office.store.reading() as work:
        assert work.workspaces.left_behind(HOST) == []


def _hostile(scene: Scene, told: Path) -> None:
    """A repository that wants to run programs wherever git lets it."""
    script = scene.linked.parent / "evil.sh"
    script.write_text(f"#!/bin/sh\necho ran >> {told}\ncat\n", encoding="utf-8")
    script.chmod(0o755)
    hooks = scene.linked / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("post-checkout", "pre-commit", "post-commit", "prepare-commit-msg", "reference-transaction", "post-index-change"):
        (hooks / hook).symlink_to(script)
    (scene.linked / ".gitattributes").write_text("* filter=evil.a=b\n", encoding="utf-8")
    git(scene.linked, "add", ".gitattributes")
    git(scene.linked, "-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message", "attributes")
    for name in ("smudge", "clean", "process"):
        git(scene.linked, "config", f"filter.evil.a=b.{name}", str(script))
    git(scene.linked, "config", "filter.evil.a=b.required", "true")
    git(scene.linked, "config", "core.fsmonitor", str(script))
    git(scene.linked, "config", "core.sshCommand", str(script))
    git(scene.linked, "config", "commit.gpgSign", "true")
    git(scene.linked, "config", "gpg.program", str(script))
    git(scene.linked, "config", "core.editor", str(script))


def test_nothing_that_a_repository_names_is_run(scene: Scene, tmp_path: Path) -> None:
    told = tmp_path / "told"
    _hostile(scene, told)
    told.unlink(missing_ok=True)
    space = scene.space()
    [tree] = scene.held(space).trees
    (Path(tree.path) / "file.txt").write_text("changed", encoding="utf-8")
    plan = scene.space(Mode.PLAN, "plan")
    scene.held(plan)
    _end_all(scene)
    assert scene.remove(space) == (tree.branch,)
    scene.remove(plan)
    assert not told.exists()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "is no git repository with a commit"),
        ("missing", "is no folder of this host"),
        ("linked/sub", "lies within a git repository"),
        ("linked/file.txt", "is no folder of this host"),
        ("empty", "is no git repository with a commit"),
        ("trees/space-1", "lies in the folder of the work trees"),
    ],
)
def test_only_the_folder_of_a_repository_with_a_commit_is_linked(scene: Scene, tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "--quiet")
    (tmp_path / "trees" / "space-1").mkdir(parents=True, exist_ok=True)
    with pytest.raises(InvalidInput, match=reason):
        scene.office.together.workspaces.link(scene.ana, scene.workspace.id, "x", str(tmp_path / name))


@pytest.mark.parametrize("path", ["linked", "./linked", "-c", "/x\n", "/x\x00y", "ext::sh -c true", ""])
def test_what_is_no_absolute_path_is_not_linked(scene: Scene, path: str) -> None:
    with pytest.raises(InvalidInput, match="is no absolute path"):
        scene.office.together.workspaces.link(scene.ana, scene.workspace.id, "x", path)


def test_repositories_of_one_workspace_lie_on_one_host_and_names_are_taken_once(scene: Scene, tmp_path: Path) -> None:
    other = repository(tmp_path / "other")
    with pytest.raises(Conflict, match="links a repository of this name already"):
        scene.office.together.workspaces.link(scene.ana, scene.workspace.id, "site", str(other))
    elsewhere = replace(scene.office, trees=FolderWorkTrees(tmp_path / "trees2", "another"))
    with pytest.raises(InvalidInput, match="is on the host another, and the workspace's others are on here"):
        elsewhere.together.workspaces.link(scene.ana, scene.workspace.id, "other", str(other))


def test_a_run_whose_tree_cannot_be_made_fails_and_says_why(scene: Scene) -> None:
    space = scene.space()
    run = scene.office.handed(scene.ana, space, "@alice go")
    scene.linked.rename(scene.linked.with_name("away"))
    with pytest.raises(RunFailed, match="its work tree of site cannot be made: git"):
        scene.placed(run)


def _left_behind(scene: Scene, space: Space, what: str) -> None:
    """What a process leaves that is killed while it makes the tree of a space."""
    branch = scene.trees.branch_of(space.id, space.name)
    path = Path(scene.trees.path_of(space.id, scene.repository))
    path.parent.mkdir(parents=True, exist_ok=True)
    known = scene.linked / ".git" / "worktrees" / path.name
    if what in ("folder", "all"):
        (path / "sub").mkdir(parents=True)
    if what in ("known without folder", "all"):
        known.mkdir(parents=True)
        (known / "locked").write_text("initializing", encoding="utf-8")
    if what in ("known and locked", "all"):
        known.mkdir(parents=True, exist_ok=True)
        (known / "locked").write_text("initializing", encoding="utf-8")
        (known / "gitdir").write_text(f"{path / '.git'}\n", encoding="utf-8")
        (known / "index.lock").touch()
        path.mkdir(exist_ok=True)
        (path / ".git").write_text(f"gitdir: {known}\n", encoding="utf-8")
    if what in ("branch", "all"):
        git(scene.linked, "branch", branch)
    if what in ("lock of the branch", "all"):
        lock = scene.linked / ".git" / "refs" / "heads" / f"{branch}.lock"
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.touch()


@pytest.mark.parametrize("what", ["folder", "known without folder", "known and locked", "branch", "lock of the branch", "all"])
def test_nothing_that_a_killed_process_left_stops_the_next_try(scene: Scene, what: str) -> None:
    space = scene.space()
    _left_behind(scene, space, what)
    [tree] = scene.held(space).trees
    assert (Path(tree.path) / "file.txt").read_text(encoding="utf-8") == "two"
    assert git(Path(tree.path), "status", "--porcelain") == ""
    _end_all(scene)
    assert scene.remove(space) == ()
    assert scene.branches() == ["main"]
    assert list((scene.linked / ".git").glob("worktrees/*")) == []


MAKER = """
import sys
from pathlib import Path
from agentplat.domain.workspaces import Repository
from agentplat.worktrees.folder import FolderWorkTrees
trees = FolderWorkTrees(Path(sys.argv[1]), "here")
made = Repository(id=1, workspace_id=1, name="site", host="here", path=sys.argv[2])
print("begins", flush=True)
print(trees.open(made, 7, "agentplat/space-7-x") if sys.argv[3] == "chat" else trees.snapshot(made, 7, "agentplat/space-7-x", 1))
"""


@pytest.fixture
def large(tmp_path: Path) -> Iterator[Path]:
    """A repository whose files take a moment to write."""
    folder = repository(tmp_path / "large")
    for i in range(3_000):
        (folder / f"{i}.txt").write_text(f"{i}" * 100, encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "many")
    return folder


@pytest.mark.parametrize("mode", ["chat", "plan"])
@pytest.mark.parametrize("moment", ["at once", "known", "files", "more files"])
def test_a_tree_is_made_whole_after_kills_at_any_moment(large: Path, tmp_path: Path, mode: str, moment: str) -> None:
    root = tmp_path / "trees"
    command = [sys.executable, "-c", MAKER, str(root), str(large), mode]

    def written() -> int:
        return sum(1 for path in root.rglob("*.txt"))

    reached = {
        "at once": lambda: True,
        "known": lambda: (large / ".git" / "worktrees").exists() or any(root.rglob("draft-*")),
        "files": lambda: written() > 0,
        "more files": lambda: written() > 300,
    }[moment]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, encoding="utf-8", start_new_session=True) as maker:
        assert maker.stdout is not None
        assert maker.stdout.readline() == "begins\n"
        wait_until(lambda: reached() or maker.poll() is not None, f"the maker comes to {moment}")
        # Only the maker: a git that it started goes on, and the next try waits for its end.
        maker.send_signal(signal.SIGKILL)
    done = subprocess.run(command, env=environment(), capture_output=True, encoding="utf-8", timeout=END_S, check=True)
    assert "WorkTree(" in done.stdout
    trees = FolderWorkTrees(root, HOST)
    made = Repository(id=1, workspace_id=1, name="site", host=HOST, path=str(large))
    tree = trees.open(made, 7, "agentplat/space-7-x") if mode == "chat" else trees.snapshot(made, 7, "agentplat/space-7-x", 1)
    assert len(list(Path(tree.path).glob("*.txt"))) == 3_002
    if mode == "chat":
        assert git(Path(tree.path), "status", "--porcelain") == ""
        kept = KeptTree(space_id=7, repository=made, path=tree.path, branch="agentplat/space-7-x")
        assert trees.remove(kept).branch is None
    assert git(large, "status", "--porcelain") == ""


def test_the_trees_of_a_store_are_found_again_by_another_process(scene: Scene) -> None:
    space = scene.space()
    [tree] = scene.held(space).trees
    with closing(open_store(scene.office.url)) as again:
        other = Office(store=again, folder=scene.office.folder, trees=FolderWorkTrees(scene.office.folder / "trees", HOST))
        shown = other.together.spaces.one(scene.ana, space.workspace_id, space.id)
    assert [(kept.path, kept.branch, kept.repository.name) for kept in shown.trees] == [(tree.path, tree.branch, "site")]
    assert scene.workspace.scope == PLATFORM
