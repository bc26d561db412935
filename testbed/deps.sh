#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# deps.sh [PACKAGE...]: installs the missing Debian packages: those that build and tests need, and
# those named. deps.sh --demo: only those that `make demo` needs.
set -eu

want="gcc make pkg-config libc6-dev libjansson-dev"
[ "${1:-}" = --demo ] ||
	want="$want g++ libdpdk-dev libcmocka-dev libck-dev libsodium-dev iproute2 nftables python3 $*"
missing=
for package in $want; do
	status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
	[ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
	echo "deps: this is no Debian machine; install by its own means:$missing" >&2
	exit 1
fi
as_root=
if [ "$(id -u)" != 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "deps: need root, or sudo, to install:$missing" >&2
		exit 1
	fi
	as_root=sudo
fi
echo "deps: installing$missing"
log=$(mktemp)
if ! { $as_root apt-get update -qq && $as_root env DEBIAN_FRONTEND=noninteractive \
	apt-get install -y -qq --no-install-recommends $missing; } >"$log" 2>&1; then
	cat "$log" >&2
	echo "deps: apt-get failed (above); install by hand:$missing" >&2
	exit 1
fi
rm -f "$log"
