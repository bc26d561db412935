# SPDX-License-Identifier: BSD-3-Clause
# plans.sh - every plan, by NIC and by host, on some NICs. Sourced after lib.sh, with rounds set,
# and slowest set to the least barriers per second.

# Both sizes; socket J carries members J, J + sockets, ...: both ALGORITHM OPTIONS SOCKET...
both() {
	local alg=$1 options=$2
	shift 2
	local four=("$@" "$@" "$@") seven=("$@" "$@" "$@" "$@")
	timeout $((60 + rounds / slowest)) "$BUILD/oracle" $options -a "$alg" -i "$rounds" "${four[@]:0:4}" &&
		timeout $((60 + rounds / slowest)) "$BUILD/oracle" $options -a "$alg" \
			-i $(((rounds + 9) / 10)) "${seven[@]:0:7}"
}

# every WIRE SOCKET...
every() {
	local wire=$1 alg
	shift
	for alg in $(algs) custom; do
		ok "$wire: $rounds barriers, by NIC, $alg" both $alg "" "$@"
		ok "$wire: $rounds barriers, by host, $alg" both $alg -H "$@"
	done
}
