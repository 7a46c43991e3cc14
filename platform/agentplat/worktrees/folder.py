"""Work trees in a folder of this host.

.. code-block:: text

    ROOT/space-5/space-5-repository-2    the work tree, on the branch agentplat/space-5-NAME
    ROOT/space-5/snapshots/COMMIT-2      files that can only be read
    ROOT/space-5/snapshots/run-9-2       which commit run 9 was shown
    ROOT/space-5.lock                    held by whoever makes or removes something of the space

Files to be read have no write permission. That keeps programs from changing by mistake what others read; it does not stop one that
runs as the platform's own user and gives itself the permission back, or as root. As there is no repository among these files, not
even such a program gets from them to the linked one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from typing_extensions import override

from agentplat.domain.errors import Conflict, InvalidInput, Violation
from agentplat.domain.workspaces import KeptTree, Repository, WorkTree
from agentplat.worktrees.command import Git, GitFailed
from agentplat.worktrees.port import Left, WorkTrees

BRANCHES = "agentplat/"
MOST_SLUG = 40
LEFTOVERS = "What was in the work tree when the space was removed"
_MARK = ".ready"


def _refuse(reason: str, remedy: str = "name the folder of a git repository with a commit") -> InvalidInput:
    return InvalidInput([Violation(field="path", reason=reason, remedy=remedy)])


class FolderWorkTrees(WorkTrees):
    """Work trees below a folder. host: the name of this host."""

    def __init__(self, root: Path, host: str) -> None:
        self._root, self._host = root.absolute(), host

    @property
    @override
    def host(self) -> str:
        return self._host

    @override
    def check(self, path: str) -> str:
        if "\x00" in path or not path.isprintable() or not Path(path).is_absolute():
            raise _refuse("is no absolute path", "write a path from / on")
        folder = Path(os.path.realpath(path))
        if not folder.is_dir():
            raise _refuse("is no folder of this host")
        if folder.is_relative_to(os.path.realpath(self._root)):
            raise _refuse("lies in the folder of the work trees", "name a repository elsewhere")
        git = Git(folder)
        try:
            bare = git("rev-parse", "--is-bare-repository") == "true"
            top = git("rev-parse", "--absolute-git-dir") if bare else git("rev-parse", "--show-toplevel")
            git("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        except GitFailed:
            raise _refuse("is no git repository with a commit") from None
        if Path(os.path.realpath(top)) != folder:
            raise _refuse("lies within a git repository", "name the repository's own folder")
        return str(folder)

    @override
    def branch_of(self, space_id: int, name: str) -> str:
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower())[:MOST_SLUG].strip("-")
        return f"{BRANCHES}space-{space_id}-{slug or 'work'}"

    def _space(self, space_id: int) -> Path:
        return self._root / f"space-{space_id}"

    @override
    def path_of(self, space_id: int, repository: Repository) -> str:
        # Git names what it keeps of a work tree by the last part of its path, so that part is the space's own too.
        return str(self._space(space_id) / f"space-{space_id}-repository-{repository.id}")

    @contextmanager
    def _alone(self, space_id: int) -> Iterator[int]:
        """Keep others from the trees of a space. A git that was started goes on holding the lock when this process is killed."""
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = (self._root / f"space-{space_id}.lock").open("w", encoding="utf-8")
        except OSError as error:
            raise Conflict(f"the folder of the work trees cannot be used: {error.strerror}") from error
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._space(space_id).mkdir(mode=0o700, exist_ok=True)
            yield lock.fileno()

    @override
    def open(self, repository: Repository, space_id: int, branch: str) -> WorkTree:
        path = Path(self.path_of(space_id, repository))
        found = WorkTree(name=repository.name, path=str(path), branch=branch)
        with self._alone(space_id) as lock:
            ready = path.with_name(f"{path.name}{_MARK}")
            if ready.exists() and path.is_dir():
                return found
            ready.unlink(missing_ok=True)
            git = Git(Path(repository.path), [path], [lock])
            self._clear(git, path, branch)
            if git.succeeds("show-ref", "--verify", "--quiet", f"refs/heads/{branch}"):
                git("worktree", "add", "--quiet", "--", str(path), branch)
            else:
                start = git("rev-parse", "--verify", "HEAD^{commit}")
                git("worktree", "add", "--quiet", "--no-track", "-b", branch, "--", str(path), start)
            ready.touch()
        return found

    def _clear(self, git: Git, path: Path, branch: str) -> None:
        """Take away what a try left that did not come to its end: the folder, what the repository knows of it, a branch's lock."""
        _remove_folder(path)
        common = Path(git("rev-parse", "--path-format=absolute", "--git-common-dir"))
        (common / "refs" / "heads" / f"{branch}.lock").unlink(missing_ok=True)
        # Not `prune`, which would forget work trees of other people's that are away for a while.
        git.succeeds("worktree", "remove", "--force", "--force", "--", str(path))
        for known in (common / "worktrees").glob(f"{path.name}*"):
            if re.fullmatch(r"\d*", known.name.removeprefix(path.name)) and not (known / "gitdir").exists():
                shutil.rmtree(known)

    @override
    def snapshot(self, repository: Repository, space_id: int, branch: str, run_id: int) -> WorkTree:
        folder = self._space(space_id) / "snapshots"
        with self._alone(space_id) as lock:
            folder.mkdir(mode=0o700, exist_ok=True)
            for draft in folder.glob("draft-*"):
                _remove_folder(draft)
            git = Git(Path(repository.path), keeps=[lock])
            pin = folder / f"run-{run_id}-{repository.id}"
            commit = pin.read_text(encoding="ascii") if pin.exists() else _tip(git, branch)
            path = folder / f"{commit}-{repository.id}"
            if not path.exists():
                _export(git, commit, folder, path)
            path.chmod(0o555)
            if not pin.exists():
                draft = folder / f"draft-{pin.name}"
                draft.write_text(commit, encoding="ascii")
                draft.rename(pin)
        return WorkTree(name=repository.name, path=str(path), branch=None)

    @override
    def remove(self, tree: KeptTree) -> Left:
        path = Path(tree.path)
        with self._alone(tree.space_id) as lock:
            there = Path(tree.repository.path).is_dir()
            if not there:
                # Without its repository a work tree is files whose history is gone; they are all that is left, so they stay.
                raise Conflict(f"the repository {tree.repository.name} is not where it was linked")
            git = Git(Path(tree.repository.path), [path], [lock])
            ready = path.with_name(f"{path.name}{_MARK}")
            committed = False
            if ready.exists() and (path / ".git").exists():
                committed = _commit_all(Git(path, [Path(tree.repository.path)], [lock]), tree.branch)
            ready.unlink(missing_ok=True)
            self._clear(git, path, tree.branch)
            stays = _keep_unmerged(git, tree.branch)
        return Left(branch=tree.branch if stays else None, committed=committed)

    @override
    def spaces(self) -> list[int]:
        found = (re.fullmatch(r"space-(\d{1,18})", path.name) for path in self._root.glob("space-*") if path.is_dir())
        return sorted(int(match[1]) for match in found if match)

    @override
    def remove_snapshots(self, space_id: int) -> None:
        if not self._space(space_id).exists():
            return
        with self._alone(space_id):
            _remove_folder(self._space(space_id) / "snapshots")
            with contextlib.suppress(OSError):
                self._space(space_id).rmdir()


def _tip(git: Git, branch: str) -> str:
    ours = f"refs/heads/{branch}"
    known = git.succeeds("show-ref", "--verify", "--quiet", ours)
    return git("rev-parse", "--verify", f"{ours}^{{commit}}" if known else "HEAD^{commit}")


def _export(git: Git, commit: str, folder: Path, path: Path) -> None:
    """Write the files of a commit to a path, whole or not at all, and take the permission to write away."""
    draft = Path(tempfile.mkdtemp(prefix="draft-", dir=folder))
    files = draft / "files"
    files.mkdir()
    whole = git("rev-parse", "--absolute-git-dir")
    where = {"GIT_DIR": whole, "GIT_WORK_TREE": str(files), "GIT_INDEX_FILE": str(draft / "index")}
    git("read-tree", commit, **where)
    git("checkout-index", "--all", "--quiet", **where)
    for inner, _, names in os.walk(files):
        for name in names:
            file = Path(inner, name)
            if not file.is_symlink():
                file.chmod(file.stat().st_mode & 0o555)
        if inner != str(files):  # a folder that cannot be written to cannot be renamed either
            Path(inner).chmod(0o555)
    files.rename(path)
    _remove_folder(draft)


def _remove_folder(path: Path) -> None:
    """Remove a folder with all in it, whatever permissions it has, and nothing that links in it lead to."""
    if path.is_symlink() or path.is_file():
        path.unlink()
        return
    for inner, _, _ in os.walk(path):
        Path(inner).chmod(0o700)
    if path.exists():
        shutil.rmtree(path)


def _commit_all(git: Git, branch: str) -> bool:
    """Commit what was not, and give commits that no branch has one; whether anything was committed."""
    # Not into repositories within this one: what such a one names would be run.
    changed = bool(git("status", "--porcelain", "--untracked-files=all", "--ignore-submodules=dirty"))
    if changed:
        git("add", "--all")
        git("commit", "--quiet", "--no-verify", "--allow-empty-message", "--message", LEFTOVERS)
    head = git("rev-parse", "--verify", "HEAD^{commit}")
    if not git("for-each-ref", "--count=1", f"--contains={head}"):
        git("update-ref", f"refs/heads/{branch}-{head[:12]}", head)
    return changed


def _keep_unmerged(git: Git, branch: str) -> bool:
    """Delete the branch if all of its commits are elsewhere too; whether it stays."""
    ours = f"refs/heads/{branch}"
    if not git.succeeds("show-ref", "--verify", "--quiet", ours):
        return False
    tip = git("rev-parse", "--verify", ours)
    # What is to be left out of the branches is named as they are, without refs/heads.
    alone = git("rev-list", "--count", tip, "--not", f"--exclude={branch}", "--branches", "--remotes", "--tags")
    somebody_is_on_it = f"branch {ours}" in git("worktree", "list", "--porcelain").splitlines()
    if alone != "0" or somebody_is_on_it:
        return True
    git("update-ref", "-d", ours, tip)
    return False
