#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What a site installs by means of its own: a CMake package, a module, RPM packages. Each is installed
# into a folder, and used from there.
set -u
cd "$(dirname "$0")/.." || exit 1
. testbed/e2e/lib.sh
version=$(sed -n 's/^VERSION *:= *//p' Makefile)
first=$work/first tree=$work/tree

# A tree with lib64, moved after its installation: nothing may name the first folder.
installed_and_moved() {
	make -s install BUILD="$BUILD" prefix=/ libdir=/lib64 OMPI_COMPONENTS=/lib64/openmpi DESTDIR="$first" && mv "$first" "$tree"
}

cmake_project() { # VERSION
	mkdir -p "$work/cmake"
	cat >"$work/cmake/CMakeLists.txt" <<-END
		cmake_minimum_required(VERSION 3.16)
		project(hello C)
		find_package(nbar $1 REQUIRED CONFIG)
		add_executable(hello $PWD/hostlib/examples/hello.c)
		target_link_libraries(hello nbar::nbar)
	END
	rm -rf "$work/cmake/build"
	cmake -S "$work/cmake" -B "$work/cmake/build" -Dnbar_DIR="$tree/lib64/cmake/nbar"
}

cmake_hello() {
	cmake_project "$version" && cmake --build "$work/cmake/build" && hello_runs "$work/cmake/build/hello"
}

hello_runs() { # PROGRAM: one member alone, with a NIC in its process
	mkdir -p "$work/meet" && "$1" host:wire=udp,bind=127.0.0.1:0 "$work/meet" 0 1
}

cmake_refuses() {
	! cmake_project "$1" 2>"$work/cmake.err" && grep "version: $version" "$work/cmake.err"
}

# Open MPI finds the component, also in a home without folders of Open MPI.
components() {
	[ ! -f "$BUILD/components/mca_coll_nbar.so" ] || ompi_info --parsable 2>/dev/null | grep -q '^mca:coll:nbar'
}

# Prints what the shell has after `module load nbar`. $1: a command that prints its changes as a script of bash.
after_load() {
	MODULEPATH=$tree/share/modulefiles
	export MODULEPATH
	(eval "$($1 bash load nbar)" && type -p nbar nbar-nicd && env | grep -E '^(OMPI_MCA|LD_LIBRARY_PATH|PYTHONPATH|CMAKE|MANPATH)' &&
		HOME=$work/home components && python3 -c 'import nbar' && nbar --version && eval "$($1 bash unload nbar)" && ! env | grep -E '^OMPI_MCA_coll_nbar_enable')
}

module_loads() {
	unset OMPI_MCA_coll_nbar_where
	after_load "$1" >"$work/module" 2>&1
	cat "$work/module"
	grep -qx "$tree/bin/nbar-nicd" "$work/module" && grep -qx "OMPI_MCA_coll_nbar_enable=1" "$work/module" &&
		grep -q "^LD_LIBRARY_PATH=$tree/lib64" "$work/module" &&
		grep -qx "OMPI_MCA_mca_base_component_path=SYS_DEFAULT:$tree/lib64/openmpi:USER_DEFAULT" "$work/module" &&
		tail -n 1 "$work/module" | grep -q "$version"
}

# The macros that RPM-based systems have.
rpm_build() {
	make -s dist BUILD="$work" &&
		rpmbuild -ta "$work/nbar-$version.tar.gz" --nodeps -D "_topdir $work/rpm" -D "_unitdir /usr/lib/systemd/system" \
			-D "_sysusersdir /usr/lib/sysusers.d" -D "python3_sitelib /usr/lib/python3/site-packages" \
			-D "mpicc_openmpi mpicc.openmpi" -D "mpicc_mpich mpicc.mpich" "${without[@]}" >"$work/rpm.log" 2>&1 ||
		{ tail -n 30 "$work/rpm.log"; return 1; }
}

rpm_lint() {
	rpmlint --config packaging/rpmlint.toml packaging/nbar.spec "$work"/rpm/{S,}RPMS >"$work/lint"
	grep -E ': [EW]: |checked' "$work/lint"
	grep -q ' 0 errors' "$work/lint"
}

rpm_install() {
	mkdir -p "$work/system" && rpm --root "$work/system" --initdb &&
		rpm --root "$work/system" -i --nodeps --noscripts "$work"/rpm/RPMS/*/*.rpm && rpm --root "$work/system" -qa && rpm --root "$work/system" -V -a --nodeps --noscripts
}

rpm_barrier() {
	BUILD=$work/system/usr/bin daemon "$work/run" --nics 2 && LD_LIBRARY_PATH=$work/system/usr/lib64 \
		"$work/system/usr/bin/nbar" bench --nic "$work/run/n0.sock" --nic "$work/run/n1.sock" -i 200 -x 20
}

ok "installed with lib64, and moved" installed_and_moved
if command -v cmake >/dev/null; then
	ok "CMake: find_package(nbar $version) builds the example" cmake_hello
	ok "CMake: another version is refused" cmake_refuses 0.2
else
	skip "CMake" "cmake is not installed: apt-get install cmake"
fi
lmod=$(ls /usr/share/lmod/*/libexec/lmod 2>/dev/null | head -n 1)
if [ -n "$lmod" ]; then
	ok "Lmod: load and unload" module_loads "$lmod"
elif command -v modulecmd >/dev/null; then
	ok "Environment Modules: load and unload" module_loads modulecmd
else
	skip "module load and unload" "no modulecmd here: apt-get install environment-modules, or lmod"
fi
if command -v rpmbuild >/dev/null; then
	without=()
	[ -n "$(command -v mpicc.openmpi)" ] && [ -f "$tree/lib64/openmpi/mca_coll_nbar.so" ] || without+=(--without openmpi)
	[ -f "$tree/lib64/libnbar-mpi-mpich.so" ] || without+=(--without mpich)
	has_wire dpdk || without+=(--without dpdk)
	has_wire verbs || without+=(--without rdma)
	has_wire kernel || without+=(--without kernel)
	ok "RPM: the packages build from make dist" rpm_build
	if command -v rpmlint >/dev/null; then
		ok "RPM: rpmlint finds no error" rpm_lint
	else
		skip "RPM: rpmlint finds no error" "rpmlint is not installed: apt-get install rpmlint"
	fi
	ok "RPM: the packages install into a tree" rpm_install
	ok "RPM: a barrier from the tree" rpm_barrier
else
	skip "RPM" "rpmbuild is not installed: apt-get install rpm"
fi
finish
