#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Barriers that programs in the kernel run, on interfaces of several kinds, as kernel.sh does on veth: VLAN, bond,
# bridge, macvlan, and the least and largest frames. Needs the right to load programs; skipped without it.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh

# Makes interface X of a kind on V, or changes V. Called at each end.
make_kind() { # KIND V X
	case $1 in
	vlan) ip link add link "$2" name "$3" type vlan id 7 ;;
	macvlan) ip link add link "$2" name "$3" type macvlan mode bridge ;;
	bridge) ip link add "$3" type bridge && ip link set "$2" master "$3" ;;
	bond) ip link add "$3" type bond mode active-backup && ip link set "$2" down && ip link set "$2" master "$3" ;;
	mtu*) ip link set "$2" mtu "${1#mtu}" ;;
	esac || return
	[[ $1 == mtu* ]] || ip link set "$3" up
}
export -f make_kind

over() { # KIND
	local x=x
	[[ $1 != mtu* ]] || x=v
	daemons_end && kernel_here ${x}a && kernel_there ${x}b && barriers -i 300 && in_kernel 300
}

kernel_or_skip "kernel over other interfaces"
for kind in ${KINDS:-mtu68 mtu9000 macvlan vlan bridge bond}; do
	if make_kind "$kind" va xa 2>"$work/err" && nsenter -t "$other" -n bash -c "make_kind $kind vb xb" 2>"$work/err"; then
		ok "kernel: 300 barriers over $kind" over "$kind"
		ip link delete xa 2>/dev/null
		nsenter -t "$other" -n ip link delete xb 2>/dev/null
	else
		skip "kernel: 300 barriers over $kind" "$(head -n 1 "$work/err")"
	fi
done
finish
