# What .ci/run and .ci/campaign share. Sourced by bash, from the repository's root.
# shellcheck shell=bash

export GOWORK=off # a go.work of the person who runs this must not count

step_name=start
ci_dir=$PWD/.ci

# step NAME: announces a step; a failure after it is reported under this name.
step() {
  step_name=$1
  printf '\n=== %s (%d s so far)\n' "$step_name" "$SECONDS"
}

fail() {
  printf '\nci: FAILED: %s: %s\n' "$step_name" "$1" >&2
  exit 1
}

# nested_modules: the directories of all go.mod files below the root, one a
# line, without the checkers' own module.
nested_modules() {
  git ls-files -co --exclude-standard -- '*/go.mod' ':!tools/go.mod' ':!**/testdata/**' |
    while read -r file; do if [ -f "$file" ]; then dirname "$file"; fi; done | sort -u
}

# race_detector: prints -race where it can work. The detector needs a C
# compiler; as root on Debian it is installed, elsewhere a bare machine goes
# without and is told so. SQLite's own code, translated from C, is left out: the
# detector makes it thirty times slower and minutes long to build.
race_detector() {
  if [ "$(go env CGO_ENABLED)" != 1 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "ci: no C compiler for the race detector: installing gcc" >&2
    { apt-get -qq update && apt-get -qq install -y --no-install-recommends gcc libc6-dev; } >&2 || true
  fi
  if [ "$(go env CGO_ENABLED)" = 1 ]; then
    echo "-race -gcflags=modernc.org/...=-race=false"
  else
    echo "ci: WARNING: no C compiler, so the tests run WITHOUT the race detector" >&2
  fi
}

# oracles: installs what tests compare with where it is there: ripgrep, for Grep
# and Glob, and bubblewrap, in which generated commands are run. Without them
# those tests skip and say so.
oracles() {
  local pair
  for pair in rg:ripgrep bwrap:bubblewrap; do
    command -v "${pair%:*}" >/dev/null && continue
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
      echo "ci: no ${pair#*:}, which tests compare with: installing it" >&2
      { apt-get -qq update && apt-get -qq install -y --no-install-recommends "${pair#*:}"; } >&2 || true
    fi
    command -v "${pair%:*}" >/dev/null || echo "ci: NOTE: no ${pair#*:}, so the tests that compare with it skip" >&2
  done
}

# postgres_server DIR: starts the server that tests find in
# TURNWRIGHT_TEST_POSTGRES, if that names none yet. Its tests skip without one,
# which is no proof, so it must start. stop_postgres DIR ends it.
postgres_server() {
  [ -z "${TURNWRIGHT_TEST_POSTGRES:-}" ] || { echo "using the server of TURNWRIGHT_TEST_POSTGRES"; return 0; }
  mkdir -p "$1"
  TURNWRIGHT_TEST_POSTGRES=$(.ci/postgres start "$1") ||
    fail "no PostgreSQL server: install PostgreSQL, or let TURNWRIGHT_TEST_POSTGRES name a database in which schemas may be made"
  export TURNWRIGHT_TEST_POSTGRES
  echo "PostgreSQL at ${TURNWRIGHT_TEST_POSTGRES##*@}"
}

stop_postgres() { [ ! -e "$1/data" ] || "$ci_dir/postgres" stop "$1"; }

# fuzz_targets MODULE: "package target" for each fuzz target of the module.
fuzz_targets() {
  (cd "$1" && go test -list '^Fuzz' ./...) | awk '
    /^Fuzz/ { names[++n] = $1; next }
    $1 == "ok" { for (i = 1; i <= n; i++) print $2, names[i]; n = 0 }'
}

# deadline_race LOG: whether a fuzz run failed only because its time was up. Go
# before 1.27 reports that as a failure now and then (go.dev/issue/75804): the
# log then says "context deadline exceeded" and names no failing input.
deadline_race() {
  grep -qE '^ +context deadline exceeded$' "$1" && ! grep -qE 'Failing input|panic|hung or terminated' "$1"
}

# cores: how many things may run side by side.
cores() { getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2; }
