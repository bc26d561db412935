# SPDX-License-Identifier: BSD-3-Clause
# plans.sh - runs every plan on some NICs, by the NICs and by the hosts. Sourced after lib.sh, with
# `rounds` set to the number of barriers, and `slowest` to the least barriers per second, for a limit.

# both ALGORITHM OPTIONS SOCKET...: runs barriers of 4 and of 7 members, which are assigned to the
# sockets round robin.
both() {
	local alg=$1 options=$2
	shift 2
	local four=("$@" "$@" "$@") seven=("$@" "$@" "$@" "$@")
	timeout $((60 + rounds / slowest)) "$BUILD/oracle" $options -a "$alg" -i "$rounds" "${four[@]:0:4}" &&
		timeout $((60 + rounds / slowest)) "$BUILD/oracle" $options -a "$alg" \
			-i $(((rounds + 9) / 10)) "${seven[@]:0:7}"
}

# every WIRE SOCKET...: runs every plan over these NICs.
every() {
	local wire=$1 alg
	shift
	for alg in $(algs) custom; do
		ok "$wire: $rounds barriers, by NIC, $alg" both $alg "" "$@"
		ok "$wire: $rounds barriers, by host, $alg" both $alg -H "$@"
	done
}
