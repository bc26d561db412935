#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The Debian packages: built, checked by lintian, installed and used in minimal systems.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/fresh/lib.sh
releases=${RELEASES:-bookworm trixie}

build() {
	inside "$1" newcomer "sudo apt-get install -y -qq --no-install-recommends dpkg-dev lintian &&
		sudo apt-get build-dep -y -qq --no-install-recommends ./ &&
		DEB_BUILD_OPTIONS='nocheck parallel=2' dpkg-buildpackage -us -uc -b"
}

check_packages() {
	inside "$1" newcomer "cd .. && lintian --fail-on error,warning nbar_*.changes"
}

install_packages() {
	inside "$1" newcomer "sudo apt-get install -y -qq --no-install-recommends ../*nbar*_*.deb openmpi-bin"
}

# Without an init system, by the command line of the unit.
barrier() {
	inside "$1" newcomer "sudo apt-get install -y -qq --no-install-recommends gcc libc6-dev pkg-config &&
		debian/tests/barrier"
}

why=$(cannot)
for release in $releases; do
	if [ -n "$why" ]; then
		skip "$release" "$why"
		continue
	fi
	system "$release" git,make,sudo,ca-certificates >"$work/system" 2>&1
	rc=$?
	if [ $rc = 77 ]; then
		skip "$release" "debootstrap cannot fetch it: $(tail -n 1 "$work/bootstrap")"
	elif [ $rc != 0 ]; then
		ok "$release: the system" eval 'cat "$work/system"; false'
	else
		ok "$release: dpkg-buildpackage" build "$release"
		ok "$release: lintian" check_packages "$release"
		ok "$release: apt install" install_packages "$release"
		ok "$release: the packages' own test" barrier "$release"
	fi
done
finish
