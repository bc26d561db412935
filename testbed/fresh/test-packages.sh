#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The Debian packages: built, checked by lintian, installed and used in minimal systems.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/fresh/lib.sh

build() {
	inside "$1" newcomer "sudo apt-get install -y -qq --no-install-recommends dpkg-dev lintian &&
		sudo apt-get build-dep -y -qq --no-install-recommends ./ && make openmpi-headers &&
		dpkg-buildpackage -us -uc -b"
}

check_packages() {
	inside "$1" newcomer "cd .. && lintian --fail-on error,warning nbar_*.changes"
}

install_packages() {
	inside "$1" newcomer "sudo apt-get install -y -qq --no-install-recommends ../*nbar*_*.deb openmpi-bin"
}

# The test starts the daemon by the command line of the unit, because no init system runs here.
barrier() {
	inside "$1" newcomer "sudo apt-get install -y -qq --no-install-recommends gcc libc6-dev pkg-config &&
		debian/tests/barrier"
}

python() {
	inside "$1" newcomer "debian/tests/python"
}

# The commands of packaging/README.md that follow the installation, on two test hosts.
service() {
	inside "$1" root "apt-get install -y -qq --no-install-recommends iproute2 adduser environment-modules &&
		cd ~newcomer/nbar && testbed/fresh/service.sh newcomer"
}

mpi() {
	inside "$1" newcomer "sudo apt-get install -y -qq --no-install-recommends libopenmpi-dev && debian/tests/mpi"
}

tests() { # RELEASE
	ok "$1: dpkg-buildpackage" build "$1"
	ok "$1: lintian" check_packages "$1"
	ok "$1: apt install" install_packages "$1"
	ok "$1: the packages' own test" barrier "$1"
	ok "$1: the packages' own test of Python" python "$1"
	ok "$1: the packages' own test of MPI" mpi "$1"
	ok "$1: the service on two hosts, and MPI by a member of the group nbar" service "$1"
}

each_release tests
finish
