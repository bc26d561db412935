#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# In-process NICs, on UDP, without a daemon: barriers between processes, between two network
# namespaces, and with 5 % loss; the oracle checks each barrier. Tests that need namespaces or nftables
# are skipped where these are missing.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
in_namespaces
may=$?
[ $may = 0 ] && ip link set lo up
oracle=$BUILD/oracle
self=host:wire=udp,bind=127.0.0.1:0

# times N WORD: prints the word N times
times() {
	local i
	for ((i = 0; i < $1; i++)); do
		echo "$2"
	done
}

algorithms() {
	local alg
	for alg in $(algs) custom; do
		"$oracle" -i 500 -a $alg $(times 4 $self) && "$oracle" -i 200 -a $alg $(times 7 $self) &&
			"$oracle" -i 50 -H -a $alg $(times 3 $self) || return
	done
}

policies() {
	local wait
	for wait in spin yield block; do
		NBAR_WAIT=$wait "$oracle" -i 200 $(times 2 $self) || return
	done
}

loss() {
	nft -f - <<-'RULES'
		table ip nbar {
			chain in {
				type filter hook input priority 0;
				udp dport 1024-65535 numgen random mod 100 < 5 counter drop
			}
		}
	RULES
}

lost() {
	nft list table ip nbar | grep -E 'counter packets [1-9]'
}

# A member in the other namespace and two members here exchange endpoint addresses by a file.
across() {
	local file=$work/shared pid rc
	truncate -s 1M "$file"
	nsenter -t $other -n "$oracle" -m "$file" -k 0 -n 3 -r 0 -i 2000 host:wire=udp &
	pid=$!
	"$oracle" -m "$file" -k 0 -n 3 -r 1 -i 2000 host: host:wire=udp,bind=10.99.0.1:0
	rc=$?
	wait $pid && return $rc
}

network() {
	ip addr add 10.99.0.1/24 dev va && nsenter -t $other -n ip addr add 10.99.0.2/24 dev vb
}

ok "20,000 barriers of 2 processes" "$oracle" -i 20000 $(times 2 $self)
ok "5,000 barriers of 4" "$oracle" -i 5000 $(times 4 $self)
ok "2,000 barriers of 8" "$oracle" -i 2000 $(times 8 $self)
ok "each algorithm, by NIC and by host" algorithms
ok "each way to wait" policies
ok "each member in turn comes late, by more than the retry budget" \
	"$oracle" -i 4 -d 3500 $(times 4 $self,budget-ms=3000)
if [ $may = 0 ]; then
	ok "two network namespaces" other_namespace
	ok "they have addresses" network
	ok "2,000 barriers between them; NICs find their own addresses" across
else
	skip "two namespaces" "network namespaces are not permitted here (run as root)"
fi
if [ $may = 0 ] && command -v nft >/dev/null && loss 2>/dev/null; then
	ok "500 barriers of 2 with 5 % loss" "$oracle" -i 500 $(times 2 $self)
	ok "some frames were lost" lost
	ok "300 barriers of 5 with 5 % loss, by each of three algorithms" sh -c \
		"$oracle -i 300 -a mcs $(times 5 $self | tr '\n' ' ') && \
		 $oracle -i 300 -a linear $(times 5 $self | tr '\n' ' ') && \
		 $oracle -i 300 -a dissemination:2 $(times 5 $self | tr '\n' ' ')"
else
	skip "loss" "no nftables in a network namespace here (apt-get install nftables)"
fi
finish
