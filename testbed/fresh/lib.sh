# SPDX-License-Identifier: BSD-3-Clause
# lib.sh - what the scripts of this folder share: Debian systems on this machine, made by debootstrap.
# Sourced. Needs root. All files are in a folder that the script removes at its end.
#
# NBAR_FRESH_DIR=DIR keeps the bare systems in DIR, so the next run does not download them again.

. testbed/lib.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/nbar-fresh.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 1' INT TERM

# ok TEXT COMMAND...: one test; if it fails, the last lines of the command's output are shown.
ok() {
	local text=$1 start=$SECONDS
	shift
	count=$((count + 1))
	if "$@" >"$work/out" 2>&1; then
		echo "ok $count - $text ($((SECONDS - start)) s)"
	else
		tail -n 40 "$work/out" | tr -d '\000' | sed -e 's/^/# /' -e '$a\'
		failures=$((failures + 1))
		echo "not ok $count - $text"
	fi
}

# Prints why this machine can make no such system; prints nothing if it can.
cannot() {
	if [ "$(id -u)" != 0 ]; then
		echo "root is needed"
	elif ! command -v debootstrap >/dev/null; then
		echo "debootstrap is missing"
	elif ! unshare -m true 2>/dev/null; then
		echo "no mount namespace is permitted"
	fi
}

# system RELEASE PACKAGES: makes a bare system in $work/RELEASE. Its user "newcomer" may use sudo,
# and has a clone of this tree at home; so has root. Returns 77 if debootstrap cannot fetch the release, 1 for
# other failures.
system() {
	local release=$1 root=$work/$1 bare=${NBAR_FRESH_DIR:-$work}/$1.tar packages=$2
	if [ ! -f "$bare" ]; then
		debootstrap --variant=minbase --include="$packages" "$release" "$root" >"$work/bootstrap" 2>&1 || return 77
		[ -z "${NBAR_FRESH_DIR:-}" ] || { mkdir -p "$NBAR_FRESH_DIR" && tar -C "$root" -cf "$bare.new" . && mv "$bare.new" "$bare"; } || return 1
	else
		mkdir -p "$root" && tar -C "$root" -xf "$bare"
	fi
	cp /etc/resolv.conf "$root/etc/resolv.conf"
	inside "$release" root "useradd -m -s /bin/bash newcomer &&
		echo 'newcomer ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/newcomer && apt-get update -qq" || return 1
	git clone -q . "$root/root/nbar" && git clone -q . "$root/home/newcomer/nbar" && chown -R --reference="$root/home/newcomer" "$root/home/newcomer/nbar"
}

# inside RELEASE USER COMMAND: runs the command in the system, in new pid and mount namespaces; all
# processes that it starts end with it. pivot_root makes the system the root of its mounts; under
# chroot the command could make no user namespaces. The shell remains the first process, because su
# would reap no orphans.
#
# With bare=1 the system is like a container for root alone: other users may enter no folder, and
# there are no terminals.
inside() {
	local root=$work/$1 mode=755 devices='mount --rbind /dev dev'
	if [ -n "${bare:-}" ]; then
		mode=700 devices='mount -t tmpfs -o mode=755 tmpfs dev && ln -s /proc/self/fd dev/fd && mkdir dev/shm &&
			for d in null zero full random urandom tty; do touch dev/$d && mount --bind /dev/$d dev/$d; done'
	fi
	chmod $mode "$root"
	# shellcheck disable=SC2016
	unshare -m -p -f --kill-child --propagation private sh -c '
		mount --bind "$1" "$1" && cd "$1" &&
		mount -t proc proc proc && mount -t tmpfs tmpfs tmp && mount -t tmpfs tmpfs run &&
		'"$devices"' && mount -t tmpfs tmpfs dev/shm && mount --rbind /sys sys &&
		pivot_root . mnt && umount -l /mnt &&
		env -i LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive TERM=dumb \
			su - "$2" -c "cd ~/nbar 2>/dev/null; $3"; exit $?' sh "$root" "$2" "$3" </dev/null
}

# each_release FUNCTION: calls the function with each of $RELEASES whose system can be made.
each_release() {
	local release why rc
	why=$(cannot)
	for release in ${RELEASES:-bookworm trixie}; do
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
			"$1" "$release"
		fi
	done
}
