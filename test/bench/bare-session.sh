#!/bin/sh
# What a session does to a repository, as a shell script would do it by hand:
#   bare-session.sh REPOSITORY WORK-FOLDER BRANCH CHECK ENGINE
# mirror, worktree, check on the untouched tree, engine, check, one commit, check on a clean checkout, branch.
set -eu
repository=$1 work=$2 branch=$3 check=$4 engine=$5
export GIT_AUTHOR_NAME=bench GIT_AUTHOR_EMAIL=bench@localhost GIT_COMMITTER_NAME=bench GIT_COMMITTER_EMAIL=bench@localhost
mkdir -p "$work"
git clone --quiet --mirror "$repository" "$work/mirror.git"
base=$(git -C "$work/mirror.git" rev-parse 'HEAD^{commit}')
git -C "$work/mirror.git" worktree add --quiet --detach "$work/baseline" "$base"
(cd "$work/baseline" && sh -c "$check" >"$work/baseline.log" 2>&1) && exit 1
git -C "$work/mirror.git" worktree add --quiet --detach "$work/tree" "$base"
(cd "$work/tree" && sh -c "$engine" >"$work/engine.log" 2>&1)
(cd "$work/tree" && sh -c "$check" >"$work/check.log" 2>&1)
git -C "$work/tree" add -A
git -C "$work/tree" commit --quiet -m 'Bench'
commit=$(git -C "$work/tree" rev-parse HEAD)
git -C "$work/tree" bundle create --quiet "$work/checkpoint.bundle" HEAD "^$base"
git -C "$work/tree" diff --binary "$base" "$commit" >"$work/review.patch"
git -C "$work/mirror.git" worktree add --quiet --detach "$work/clean" "$commit"
(cd "$work/clean" && sh -c "$check" >"$work/verify.log" 2>&1)
git -C "$work/mirror.git" push --quiet "$repository" "$commit:refs/heads/$branch"
rm -rf "$work"
