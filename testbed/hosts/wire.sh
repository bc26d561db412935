# SPDX-License-Identifier: BSD-3-Clause
# wire.sh - faults of the network: delay, jitter, loss, duplicates, reordering. Sourced by hub, which
# has the options in its environment. All faults apply where a frame leaves the bridge towards a
# host or a NIC, so no sender notices them.
#
# netem does it all. Where the kernel lacks it, nftables drops and doubles frames in the kernel, and
# cluster-hold delays frames.

MARK=0x6e62 # mark of frames that cluster-hold has returned, and of duplicates
HOLD_US=200 # delay of a frame that later frames shall overtake

is_set() {
	[[ $1 =~ [1-9] ]]
}

# impair_begin: selects netem or nftables, or ends with a message. It never leaves out a requested
# fault silently.
impair_begin() {
	local no_netem="not tried" no_nft="not tried"
	impair=none later=0 later_us=$DELAY # percentage of delayed frames, and the delay
	impaired=hosts
	if [ "$UPLINK" != 0 ]; then
		later=100 later_us=$UPLINK impaired=uplinks
	elif [ "$DELAY" != 0 ]; then
		later=$(awk "BEGIN { print 100 - $REORDER }")
	elif is_set "$REORDER"; then
		later=$REORDER later_us=$HOLD_US
	fi
	is_set "$LOSS$DUPLICATE$later" || return 0
	if [ "$EMULATE" != nft ] && no_netem=$(impair_netem head 2>&1); then
		impair=netem
		tc qdisc del dev head root
	elif [ "$EMULATE" != netem ] && no_nft=$(nft_missing 2>&1); then
		impair=nft
		! is_set "$later" || hold_begin || die "cannot start cluster-hold"
	else
		die "this machine cannot do to frames what was asked for. tc netem: $no_netem." \
			"nftables: $no_nft."
	fi
	[ "$impaired" = hosts ] || note "racks of $RACK hosts, $UPLINK us between two of them; by $impair"
	[ "$impaired" = uplinks ] || note "frames to the hosts: loss $LOSS %, duplicates $DUPLICATE %, reordered $REORDER %," \
		"delay $DELAY us, jitter $JITTER us; by $impair"
	[ "$DAEMON$WIRE" = oneaf_packet ] || [ "$DAEMON" != one ] ||
		note "the NICs' own frames do not cross the network with --wire $WIRE"
}

# impair PORT hosts|uplinks: applies the requested faults to frames that leave the bridge by this
# port.
impair() {
	[ "$impair" = none ] || [ "$2" != "$impaired" ] || "impair_$impair" "$1" || die "cannot impair frames to $1"
}

impair_netem() {
	local words=()
	is_set "$LOSS" && words+=(loss "$LOSS%")
	is_set "$DUPLICATE" && words+=(duplicate "$DUPLICATE%")
	is_set "$later" && words+=(delay "${later_us}us" "${JITTER}us")
	is_set "$REORDER" && words+=(reorder "$(awk "BEGIN { print 100 - $later }")%")
	tc qdisc add dev "$1" root netem limit 10000 "${words[@]}"
}

# Fails, and prints what is missing, if nftables cannot cause the requested faults.
nft_missing() {
	command -v nft >/dev/null || { echo "no nft here; on Debian: apt-get install nftables"; return 1; }
	if is_set "$later" && [ ! -x "$HOLD" ]; then
		echo "no $HOLD; build it: make check-cluster, or make BUILD=... BUILD/cluster-hold"
		return 1
	fi
	nft -f - <<-EOF
		add table netdev wire
		add chain netdev wire try { type filter hook egress device "head" priority 0; }
		add rule netdev wire try numgen random mod 10000 < 1 meta mark set 1 dup to "head"
		delete chain netdev wire try
	EOF
}

# Makes the veth pair hold-late. The rules of impair_nft forward frames to "hold"; cluster-hold
# receives them at "late", and sends them back to "late" with a mark. So they enter the bridge again
# at "hold", and the bridge sends them by their address. The bridge itself sends nothing to "hold".
hold_begin() {
	plug hold late && ip link set late up &&
		bridge link set dev hold learning off flood off mcast_flood off bcast_flood off || return 1
	"$HOLD" late "$later_us" "$JITTER" $((MARK)) &
}

# some PERCENT: prints the words of a rule that select this percentage of the frames.
some() {
	local parts
	parts=$(awk "BEGIN { printf \"%d\", $1 * 100 + 0.5 }")
	[ "$parts" = 10000 ] || echo "numgen random mod 10000 < $parts"
}

impair_nft() {
	local rule="add rule netdev wire $1"
	{
		echo "add chain netdev wire $1 { type filter hook egress device \"$1\" priority 0; }"
		echo "$rule meta mark $MARK counter accept"
		! is_set "$LOSS" || echo "$rule $(some "$LOSS") counter drop"
		if is_set "$DUPLICATE"; then
			echo "$rule $(some "$DUPLICATE") meta mark set $MARK counter dup to \"$1\""
			echo "$rule meta mark set 0"
		fi
		# Broadcasts are not held back: the bridge would send them to all hosts again.
		! is_set "$later" || echo "$rule ether daddr & 01:00:00:00:00:00 == 00:00:00:00:00:00" \
			"$(some "$later") counter fwd to \"hold\""
	} | nft -f -
}
