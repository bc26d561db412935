#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# image.sh DIR [RELEASE] - makes the files that a guest boots: DIR/vmlinuz, the kernel of Debian's package
# (unpacked, not installed), and DIR/initrd, busybox with the modules of that kernel that guests
# need. RELEASE: of this release of Debian, not of the machine's. RELEASE "arm64": of Debian's
# architecture arm64. Then DIR/root has the system of the guest, and what a cross build needs; root makes it.
#
# Called by guest. Exit status 77: this machine cannot make them; the reason is printed. Existing
# files are kept; DIR/root is made anew.
set -u
here=$(cd "$(dirname "$0")" && pwd)
dir=$1 release=${2:-}
apt=()
busybox=$(command -v busybox)
arm64=bash,busybox-static,coreutils,ibverbs-providers,iproute2,linux-image-arm64,util-linux
arm64=$arm64,libc6-dev,libibverbs-dev,libjansson-dev,libsodium-dev # for the cross build
# crc32_generic: not a dependency of rxe, but without it rxe cannot add a link.
modules="virtio_pci virtio_net 9pnet_virtio 9p crc32_generic ib_uverbs rdma_ucm rdma_rxe sch_netem veth 8021q bonding macvlan"

cannot() {
	echo "guest: $*" >&2
	exit 77
}

# Prints where apt has Debian from.
mirror() {
	apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' 2>/dev/null | head -n 1
}

# Lets apt see the release, from where this machine has its own, and in a folder of the test.
other_release() {
	local from
	from=$(mirror)
	mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${from:-http://deb.debian.org/debian/} $release main" >"$work/apt/sources"
	apt=(-o "Dir::Etc::sourcelist=$work/apt/sources" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$work/apt/lists"
		-o "Dir::Cache=$work/apt/cache" -o Acquire::Languages=none -o APT::Sandbox::User=root)
	apt-get "${apt[@]}" update >"$work/log" 2>&1 || cannot "Debian's $release cannot be had: $(tail -n 1 "$work/log")"
}

# Makes the folder $dir/root from packages that are unpacked, not installed.
fetch_arm64() {
	busybox=$dir/root/bin/busybox kernel=$dir/root
	command -v mmdebstrap >/dev/null || cannot "no mmdebstrap here; on Debian: apt-get install mmdebstrap"
	rm -rf "$dir/root"
	mmdebstrap --architectures=arm64 --variant=extract --include="$arm64" --extract-hook='ln -s bash "$1/bin/sh"' \
		"$(. /etc/os-release; echo "$VERSION_CODENAME")" "$dir/root" $(mirror) >"$work/log" 2>&1 ||
		cannot "Debian's arm64 cannot be had: $(tail -n 1 "$work/log")"
}

# Sets kernel to the folder of the unpacked package.
fetch() {
	local package
	[ -z "$release" ] || other_release
	package=$(apt-cache "${apt[@]}" depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: //p' | head -n 1)
	[ -n "$package" ] || cannot "no package linux-image-amd64 is known here: run apt-get update, or" \
		"give a folder with vmlinuz and initrd by NBAR_GUEST_IMAGE"
	kernel=$work/kernel
	(cd "$work" && apt-get "${apt[@]}" download "$package") >"$work/log" 2>&1 && dpkg -x "$work/$package"_*.deb "$kernel" ||
		cannot "$package cannot be had: $(tail -n 1 "$work/log")"
	[ -d "$kernel/lib" ] || ln -s usr/lib "$kernel/lib" # from Debian 13 on, modules are in /usr/lib
}

# Copies the modules as 00.ko, 01.ko, ..., in the order of loading.
copy_modules() {
	local version m path n=0
	version=$(ls "$kernel/lib/modules")
	depmod -b "$kernel" "$version" || return
	for m in $modules; do
		modprobe -d "$kernel" -S "$version" --show-depends "$m" || echo "missing $m"
	done >"$work/order" 2>>"$work/log"
	! grep -q ^missing "$work/order" || cannot "that kernel lacks modules: $(grep ^missing "$work/order")"
	while read -r path; do
		case $path in
		*.xz) xz -dc "$path" ;;
		*) cat "$path" ;;
		esac >"$work/root/$(printf '%02d' $n).ko" || return
		n=$((n + 1))
	done < <(awk '$1 == "insmod" && !seen[$2]++ { print $2 }' "$work/order")
}

mkdir -p "$dir" || exit 1
work=$(mktemp -d "$dir/making.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
for c in busybox cpio depmod modprobe xz; do
	command -v $c >/dev/null || cannot "no $c here; on Debian: apt-get install busybox-static cpio kmod xz-utils"
done
ldd "$busybox" >/dev/null 2>&1 && cannot "busybox is not static; apt-get install busybox-static"
if [ "$release" = arm64 ]; then
	fetch_arm64
else
	fetch
fi
mkdir -p "$work/root/bin"
cp "$busybox" "$work/root/bin/busybox" && install -m 755 "$here/init" "$work/root/init" && copy_modules &&
	(cd "$work/root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initrd" &&
	cp "$kernel"/boot/vmlinuz-* "$work/vmlinuz" && mv "$work/vmlinuz" "$work/initrd" "$dir" ||
	{ echo "guest: cannot make $dir: $(tail -n 1 "$work/log")" >&2; exit 1; }
